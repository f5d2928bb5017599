"""Alternates as tables: created, brought to the base's columns, listed at the base."""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from relayout.alternates.registry import Found, declaration_of
from relayout.commit.failpoints import passing
from relayout.commit.tables import create_table, evolve_schema, set_properties
from relayout.config import Config
from relayout.config.model import ALTERNATE_PREFIX, Alternate
from relayout.errors import CommitConflict
from relayout.read.catalog import CatalogReader
from relayout.read.tables import facts_of, fields_by_name
from relayout.table.alternates import (
    ALTERNATE_DECLARATION,
    ALTERNATE_NAME,
    ALTERNATE_OF,
    ALTERNATES,
    BASE_FIELDS,
)
from relayout.table.facts import TableFacts
from relayout.table.layouts import layout_of
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable
    from pyspark.sql import SparkSession

_ALPHABET = string.ascii_lowercase + string.digits


class Maker:
    """Makes and changes the tables of one base's alternates."""

    def __init__(
        self, spark: SparkSession, config: Config, base: TableFacts, native: NativeTable, exact: Sequence[str]
    ) -> None:
        self._spark = spark
        self._config = config
        self._base = base
        self._fields = json.dumps(fields_by_name(native), ensure_ascii=False, separators=(",", ":"))
        self._exact = exact
        self._reader = CatalogReader(config)

    def made(self, alternate: Alternate) -> Found:
        """A new table of the alternate's layout; it holds nothing yet."""
        random = "".join(secrets.choice(_ALPHABET) for _ in range(32))
        name = TableName(self._base.name.namespace, ALTERNATE_PREFIX + random)
        told = {
            ALTERNATE_OF: self._base.uuid,
            ALTERNATE_NAME: alternate.name,
            ALTERNATE_DECLARATION: declaration_of(alternate),
            BASE_FIELDS: self._fields,
        }
        create_table(self._spark, self._config, name, self._base.schema, layout_of(alternate), self._exact, told)
        passing("alternate-created")
        return self._again(name)

    def fitted(self, found: Found, alternate: Alternate) -> Found:
        """The alternate with the columns and types that the base has by now, under the name it is declared by."""
        told = {}
        wanted = {column.name: column.type for column in self._base.schema}
        if {column.name: column.type for column in found.facts.schema} != wanted:
            evolve_schema(self._spark, self._config, found.facts.name, self._base.schema)
        if found.facts.properties.get(BASE_FIELDS) != self._fields:
            told[BASE_FIELDS] = self._fields
        if found.name != alternate.name:
            told[ALTERNATE_NAME] = alternate.name
        if told:
            set_properties(self._spark, self._config, found.facts.name, told)
        return self._again(found.facts.name)

    def listed(self, tables: Iterable[str]) -> None:
        """Have the base name its alternates, so that nobody has to look through the namespace."""
        text = ",".join(sorted(tables))
        if self._base.properties.get(ALTERNATES, "") != text:
            set_properties(self._spark, self._config, self._base.name, {ALTERNATES: text})

    def _again(self, name: TableName) -> Found:
        native = self._reader.load(name)
        if native is None:
            raise CommitConflict(f"{name} was dropped meanwhile", next="run `relayout apply` again")
        return Found(facts_of(native, name))
