"""A table under rewriting: what it holds, deletes by key as other engines write them, and work held at a phase."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relayout.api import Lake
from relayout.jobs import compact as compacting

LINEAGE = "_row_id, _last_updated_sequence_number"


class Scene:
    """One table of a lake."""

    def __init__(self, lake: Lake, name: str) -> None:
        self.lake = lake
        self.name = name

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.lake.sql(statement.replace("{t}", self.name))

    def rows(self, columns: str = "*") -> list[tuple[Any, ...]]:
        found = self.lake.sql(f"SELECT {columns} FROM {self.name}").collect()
        return sorted((tuple(row) for row in found), key=repr)

    def files(self, content: int = 0) -> list[Any]:
        """Live files as Spark's metadata table shows them."""
        return list(self.lake.sql(f"SELECT * FROM lake.db.{self.name}.files WHERE content = {content}").collect())

    def deletes(self) -> int:
        return sum(len(self.files(content)) for content in (1, 2))

    def summary(self) -> Mapping[str, str]:
        snapshot = self.lake.table(self.name).current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        return {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}

    def delete_by_key(
        self, columns: Mapping[str, pa.Array], *, spec_id: int = 0, partition: Sequence[Any] = ()
    ) -> None:
        """Commit an equality delete file under this spec and partition, as Flink would."""
        native = self.lake.table(self.name)
        ids = {name: native.schema().find_field(name).field_id for name in columns}
        fields = [
            pa.field(name, values.type, metadata={b"PARQUET:field_id": str(ids[name]).encode()})
            for name, values in columns.items()
        ]
        path = Path(native.location().removeprefix("file:")) / "data" / f"{uuid.uuid4()}-keys.parquet"
        pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), path)
        content = {
            "spec-id": spec_id,
            "content": "equality-deletes",
            "file-path": str(path),
            "file-format": "parquet",
            "partition": list(partition),
            "file-size-in-bytes": path.stat().st_size,
            "record-count": len(next(iter(columns.values()))),
            "equality-ids": list(ids.values()),
        }
        self.commit(content)

    def commit(self, content: Mapping[str, Any]) -> None:
        """Add one data or delete file as its JSON describes it, true or not."""
        jvm: Any = self.lake.spark._jvm
        iceberg = jvm.org.apache.iceberg
        table = iceberg.spark.Spark3Util.loadIcebergTable(self.lake.spark._jsparkSession, f"lake.db.{self.name}")
        node = iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper().readTree(json.dumps(content))
        file = iceberg.ContentFileParser.fromJson(node, table.specs())
        delta = table.newRowDelta()
        (delta.addRows(file) if content["content"] == "data" else delta.addDeletes(file)).commit()


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], phase: str = "files-written") -> list[str]:
    """Do this once when a rewrite passes the phase; the list that comes back tells that it happened."""
    happened: list[str] = []

    def passing(place: str) -> None:
        if place == phase and not happened:
            happened.append(place)
            act()

    monkeypatch.setattr(compacting, "passing", passing)
    return happened
