"""How long a choice takes between two layouts of very many files, none of which is there: only metadata is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.sides.lakes import NAMESPACE
from relayout.api import Lake
from relayout.spark.jvm.iceberg import JavaTable, RowDelta
from relayout.spark.jvm.routing import taken_choices
from relayout.table.alternates import Account

ALTERNATE = "_mv_" + "0" * 32
PARTS = 1_000
QUESTIONS = 20


def choice_ms(lake: Lake, files: int) -> Mapping[str, Sequence[float]]:
    """Milliseconds of choices that were never made before, and of the same ones again."""
    base_snapshot = _filled(lake, "many", "part", files, {})
    native = lake.table("many")
    _told(lake, "many", {"relayout.alternates": ALTERNATE})
    account = Account(base_snapshot).summary()
    _filled(lake, ALTERNATE, "place", files, account)
    fields = {field.name: field.field_id for field in native.schema().fields}
    told = {"relayout.alternate-of": str(native.metadata.table_uuid), "relayout.base-fields": json.dumps(fields)}
    _told(lake, ALTERNATE, told)
    return {"cold": _asked(lake), "memoised": _asked(lake)}


def _asked(lake: Lake) -> list[float]:
    taken_choices(lake.spark)
    for place in range(QUESTIONS):
        frame = lake.sql(f"SELECT sum(value) FROM many WHERE place = {place} AND part < {PARTS - place}")
        frame._jdf.queryExecution().optimizedPlan()
    return taken_choices(lake.spark)


def _told(lake: Lake, table: str, properties: Mapping[str, str]) -> None:
    text = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    lake.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({text})")


def _filled(lake: Lake, table: str, partition: str, files: int, summary: Mapping[str, str]) -> int:
    lake.sql(f"CREATE TABLE {table} (part int, place int, value bigint) USING iceberg PARTITIONED BY ({partition})")
    location = lake.table(table).location()
    added: list[dict[str, Any]] = [
        {
            "spec-id": 0,
            "content": "data",
            "file-path": f"{location}/data/{number}.parquet",
            "file-format": "parquet",
            "partition": [number % PARTS],
            "file-size-in-bytes": 1_000_000,
            "record-count": 10_000,
        }
        for number in range(files)
    ]
    java = JavaTable(lake.spark, f"{lake.config.catalog.name}.{NAMESPACE}.{table}")
    java.commit_row_delta(RowDelta(None, added_rows=added, summary=summary), lambda _: "")
    return int(lake.table(table).metadata.current_snapshot_id or 0)
