"""Bases with alternates made by hand, as the contract between those who build and those who route has it."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import lit

from relayout.alternates.choice import Explanation, LayoutChoice
from relayout.api import Lake
from relayout.table.alternates import (
    ALTERNATE_NAME,
    ALTERNATE_OF,
    ALTERNATES,
    BASE_FIELDS,
    BASE_SNAPSHOT,
    FRESH_BATCHES,
    STALE_BATCHES,
)


@dataclass
class Workshop:
    """A lake whose tables and alternates the test makes itself, so that every state of freshness can be had."""

    lake: Lake

    def __post_init__(self) -> None:
        self.lake.sql("CREATE NAMESPACE IF NOT EXISTS db")

    def sql(self, text: str) -> list[Row]:
        return self.lake.sql(text).collect()

    def snapshot(self, table: str) -> int:
        found = self.lake.table(table).metadata.current_snapshot_id
        assert found is not None
        return found

    def alternate(self, base: str, name: str, layout: str, where: str = "true", **account: Any) -> str:
        """A filled alternate with this layout (`PARTITIONED BY …`); its table's name."""
        table = self.empty_alternate(base, name, layout)
        self.fill(base, table, where, **account)
        return table

    def empty_alternate(self, base: str, name: str, layout: str) -> str:
        table = "_mv_" + "".join(random.choices(string.ascii_lowercase + string.digits, k=32))
        native = self.lake.table(base)
        columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in self.frame(base).schema)
        self.sql(f"CREATE TABLE db.{table} ({columns}) USING iceberg {layout}")
        self.tell(table, {ALTERNATE_OF: str(native.metadata.table_uuid), ALTERNATE_NAME: name})
        self.tell_fields(base, table)
        others = [each for each in native.properties.get(ALTERNATES, "").split(",") if each]
        self.tell(base, {ALTERNATES: ",".join([*others, table])})
        return table

    def tell_fields(self, base: str, table: str) -> None:
        """Say that the alternate's columns are those that the base has now."""
        schema = self.lake.table(base).schema()
        ids = {schema.find_column_name(number): number for number in schema._lazy_id_to_name}
        self.tell(table, {BASE_FIELDS: json.dumps(ids)})

    def tell(self, table: str, properties: Mapping[str, str]) -> None:
        quoted = {key: value.replace("'", "\\'") for key, value in properties.items()}
        told = ", ".join(f"'{key}' = '{value}'" for key, value in quoted.items())
        self.sql(f"ALTER TABLE db.{table} SET TBLPROPERTIES ({told})")

    def frame(self, table: str) -> Any:
        self.lake.sql("SELECT 1")
        return self.lake.spark.table(f"db.{table}")

    def fill(
        self,
        base: str,
        table: str,
        where: str = "true",
        stale: Sequence[Mapping[str, Any]] | str = (),
        fresh: Sequence[Mapping[str, Any]] | None = None,
        snapshot: int | None = None,
    ) -> None:
        """Replace the alternate's rows by the base's, and account for them."""
        of = self.snapshot(base) if snapshot is None else snapshot
        told = stale if isinstance(stale, str) else json.dumps(list(stale))
        account = {STALE_BATCHES: told} if fresh is None else {FRESH_BATCHES: json.dumps(list(fresh))}
        rows = self.lake.spark.sql(f"SELECT * FROM lake.db.{base} VERSION AS OF {of} WHERE {where}")
        writer = rows.writeTo(f"lake.db.{table}")
        for key, value in (account | {BASE_SNAPSHOT: str(of)}).items():
            writer = writer.option(f"snapshot-property.{key}", value)
        writer.overwrite(lit(True))

    def explained(self, query: str) -> Explanation:
        return self.lake.explain(query)

    def layouts(self, query: str) -> dict[str, LayoutChoice]:
        """What was considered for the query's only table: `base` and the declared names of its alternates."""
        relations = self.explained(query).relations
        assert len(relations) == 1
        return {layout.name or layout.layout: layout for layout in relations[0].layouts}

    def chosen(self, query: str) -> str:
        """Declared name of the alternate that serves the query's only table, or `base`."""
        return next(name for name, layout in self.layouts(query).items() if layout.code == "CHOSEN")

    def scanned(self, frame: DataFrame) -> set[str]:
        """Names of the tables whose files the frame reads."""
        return set(re.findall(r"BatchScan lake\.db\.(\w+)", frame._jdf.queryExecution().executedPlan().toString()))

    def both_ways(self, query: str) -> list[Row]:
        """The query's rows, which must be the same with and without routing."""
        routed = sorted(self.lake.sql(query).collect(), key=repr)
        unrouted = sorted(self.lake.sql(query, route=False).collect(), key=repr)
        assert routed == unrouted, query
        return routed


@pytest.fixture(scope="session")
def workshop_in(make_lake: Callable[..., Lake]) -> Callable[[Path], Workshop]:
    return lambda folder: Workshop(make_lake(folder, {}))
