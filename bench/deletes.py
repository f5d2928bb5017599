"""Delete debt: thousands of small delete files, by position and by key, as change streams leave them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.sides.lakes import NAMESPACE
from relayout.api import Lake
from relayout.spark.jvm.iceberg import JavaTable, RowDelta

ROWS_PER_FILE = 5
IDS = {"file_path": 2147483546, "pos": 2147483545, "id": 1}


def add_deletes(lake: Lake, table: str, files: int) -> None:
    """Commit so many position delete files and as many equality delete files."""
    native = lake.table(table)
    tasks = [task.file for task in native.scan().plan_files()]
    folder = Path(native.location().removeprefix("file:")) / "data"
    deletes: list[dict[str, Any]] = []
    for number in range(files):
        file = tasks[number % len(tasks)]
        places = [(number * 7919 + 104_729 * row) % file.record_count for row in range(ROWS_PER_FILE)]
        paths = pa.array([file.file_path] * ROWS_PER_FILE)
        by_position = _written(folder, {"file_path": paths, "pos": pa.array(sorted(places), pa.int64())})
        deletes.append({**by_position, "content": "position-deletes", "referenced-data-file": file.file_path})
        keys = [
            (number * 15_485_863 + 32_452_843 * row) % (file.record_count * len(tasks)) for row in range(ROWS_PER_FILE)
        ]
        by_key = _written(folder, {"id": pa.array(keys, pa.int64())})
        deletes.append({**by_key, "content": "equality-deletes", "equality-ids": [1]})
    snapshot = native.current_snapshot()
    delta = RowDelta(snapshot.snapshot_id if snapshot else None, added_deletes=deletes)
    JavaTable(lake.spark, f"lake.{NAMESPACE}.{table}").commit_row_delta(delta, lambda _: "")


def _written(folder: Path, columns: dict[str, pa.Array]) -> dict[str, Any]:
    path = folder / f"{uuid.uuid4()}-deletes.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    fields = [
        pa.field(name, values.type, False, metadata={b"PARQUET:field_id": str(IDS[name]).encode()})
        for name, values in columns.items()
    ]
    pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), path)
    return {
        "spec-id": 0,
        "partition": [],
        "file-path": str(path),
        "file-format": "parquet",
        "file-size-in-bytes": path.stat().st_size,
        "record-count": ROWS_PER_FILE,
    }


def live_rows(lake: Lake, table: str) -> tuple[int, ...]:
    """What Spark reads with all deletes applied."""
    told = lake.sql(f"SELECT count(*), sum(id), sum(customer_id), count(note) FROM {NAMESPACE}.{table}").collect()
    return tuple(int(value) for value in told[0])
