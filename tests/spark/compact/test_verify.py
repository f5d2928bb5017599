"""`relayout verify` finds each kind of planted fault, and none in a table that was evolved and rewritten."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relayout.api import Lake
from relayout.upkeep.verification import Check
from tests.spark.compact.scene import Scene

pytestmark = pytest.mark.spark

LOWER, UPPER = "lower-bounds", "upper-bounds"


@pytest.fixture(scope="module")
def lake(make_lake: Callable[..., Lake], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = make_lake(tmp_path_factory.mktemp("verify") / "lake", {})
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    return made


def parquet(folder: Path, ids: Mapping[str, int], **columns: pa.Array) -> dict[str, Any]:
    """A file beside the table's own, and what is true of it."""
    path = folder / f"{uuid.uuid4()}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    fields = [
        pa.field(name, values.type, metadata={b"PARQUET:field_id": str(ids[name]).encode()})
        for name, values in columns.items()
    ]
    pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), path)
    rows = len(next(iter(columns.values())))
    size = path.stat().st_size
    return {"file-path": str(path), "file-format": "parquet", "file-size-in-bytes": size, "record-count": rows}


def found(lake: Lake, name: str, path: object) -> set[tuple[Check, str]]:
    return {(fault.check, fault.what) for fault in lake.verify(name).files.faults if fault.file == path}


def numbers(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def bound(value: int) -> dict[str, Sequence[Any]]:
    return {"keys": [1], "values": [value.to_bytes(8, "little").hex().upper()]}


def test_an_evolved_table_with_deletes_is_sound_before_and_after_it_is_rewritten(lake: Lake) -> None:
    scene = Scene(lake, "sound")
    scene.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING, at TIMESTAMP, x DOUBLE) USING iceberg PARTITIONED BY (p, days(at)) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')",
        "INSERT INTO {t} SELECT id, IF(id = 3, NULL, repeat('long ', CAST(id % 4 AS INT) * 9)), "
        "timestamp_seconds(id * 40000 - 90000), IF(id = 5, double('NaN'), -id) FROM range(12)",
        "ALTER TABLE {t} DROP PARTITION FIELD p",
        "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, p)",
        "INSERT INTO {t} SELECT id, concat('n', id), TIMESTAMP '1969-12-31 23:00:00', NULL FROM range(12)",
        "DELETE FROM {t} WHERE id = 7",
    )
    assert lake.verify(scene.name).files.faults == ()
    assert lake.compact(scene.name, mode="migrate").complete
    assert lake.compact(scene.name, rewrite_all=True).complete
    after = lake.verify(scene.name).files
    assert (after.faults, after.rows, after.delete_files) == ((), 22, 0)


def test_each_kind_of_planted_fault_is_found(lake: Lake) -> None:
    scene = Scene(lake, "planted")
    scene.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
    )
    folder = Path(lake.table(scene.name).location().removeprefix("file:")) / "data"
    ids = {"id": 1, "p": 2, "file_path": 2147483546, "pos": 2147483545}
    data = {"spec-id": 0, "content": "data", "partition": ["a"]}
    wrong_partition = {**data, **parquet(folder, ids, id=numbers(1, 2), p=pa.array(["a", "b"]))}
    wrong_count = {**data, **parquet(folder, ids, id=numbers(1), p=pa.array(["a"])), "record-count": 2}
    wrong_bounds = {**data, **parquet(folder, ids, id=numbers(1, 9), p=pa.array(["a", "a"]))}
    wrong_bounds |= {LOWER: bound(1), UPPER: bound(8), "null-value-counts": {"keys": [1], "values": [1]}}
    missing = {**data, **parquet(folder, ids, id=numbers(1), p=pa.array(["a"]))}
    for planted in (wrong_partition, wrong_count, wrong_bounds, missing):
        scene.commit(planted)
    Path(str(missing["file-path"])).unlink()
    of_a = next(row.file_path for row in scene.files() if row.partition.p == "a" and row.record_count == 1)
    positions = parquet(folder, ids, file_path=pa.array([of_a]), pos=numbers(5))
    scope = {"spec-id": 0, "content": "position-deletes", "partition": ["b"], **positions}
    scene.commit(scope)

    assert found(lake, scene.name, wrong_partition["file-path"]) == {(Check.PARTITION, "1 rows are not of p=a")}
    assert found(lake, scene.name, wrong_count["file-path"]) == {(Check.DATA_FILE, "holds 1 rows, its manifest says 2")}
    assert found(lake, scene.name, wrong_bounds["file-path"]) == {
        (Check.BOUNDS, "1 values of id lie outside of its bounds"),
        (Check.NULL_COUNTS, "id has 0 nulls, its manifest says 1"),
    }
    assert {check for check, _ in found(lake, scene.name, missing["file-path"])} == {Check.DATA_FILE}
    assert {check for check, _ in found(lake, scene.name, scope["file-path"])} == {
        Check.DELETE_SCOPE,
        Check.DELETE_FILE,
    }
    assert lake.compact(scene.name, rewrite_all=True).complete is False
