"""Taking away tables that nobody declares any more, with what hangs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.alternates.freshness import standing
from relayout.alternates.linter import worthwhile
from relayout.alternates.registry import Found
from relayout.commit.tables import drop_table, set_properties
from relayout.config import Config
from relayout.config.model import ALTERNATE_PREFIX
from relayout.jobs.alternates.shelf import alternates_in, registry_for
from relayout.read.catalog import CatalogReader
from relayout.read.tables import facts_of
from relayout.table.alternates import ALTERNATES
from relayout.table.layouts import layout_of
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prune(spark: SparkSession, config: Config, table: str) -> str:
    """Drop the table; why it stays, if it is an alternate whose successor cannot serve yet."""
    name = TableName(tuple(config.namespace.split(".")), table)
    if not table.startswith(ALTERNATE_PREFIX):
        drop_table(spark, config, name)
        return ""
    reader = CatalogReader(config)
    found = next((one for one in alternates_in(reader, config) if one.table == table), None)
    if found is None:
        return ""
    for base in reader.table_names(config.namespace):
        if not base.startswith(ALTERNATE_PREFIX) and (why := _dropped_from(spark, config, reader, base, found)):
            return why
    drop_table(spark, config, name)
    return ""


def _dropped_from(spark: SparkSession, config: Config, reader: CatalogReader, base: str, found: Found) -> str:
    """Take the alternate out of its base's list first, so that no query looks for it when it is gone."""
    name = TableName(tuple(config.namespace.split(".")), base)
    native = reader.load(name)
    facts = facts_of(native, name) if native is not None else None
    if native is None or facts is None or not found.is_of(facts):
        return ""
    declared = config.tables.get(base)
    wanted = worthwhile(declared.alternates, layout_of(declared)) if declared else []
    registry = registry_for(wanted, alternates_in(reader, config), facts, native)
    if any(match and match.table == found.table for _, match in registry.matched):
        return f"it is declared again for {base}"
    successor = registry.successor_of(found)
    if successor is not None and facts.ancestry:
        heir = successor[1].facts.ancestry if successor[1] else ()
        if not heir or not standing(heir, facts.ancestry).whole:
            return f"it serves until the new layout of {found.name} is complete"
    listed = facts.properties.get(ALTERNATES, "").split(",")
    if found.table in listed:
        rest = ",".join(one for one in listed if one != found.table)
        set_properties(spark, config, name, {ALTERNATES: rest})
    return ""
