"""Loading a batch anew replaces exactly that batch's rows, however they lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relayout.api import Lake
from relayout.commit.receipts import Outcome

pytestmark = pytest.mark.spark

LakeOf = Callable[..., Lake]
Rows = Callable[[Lake, str], list[tuple[Any, ...]]]
Pending = Callable[..., dict[str, str]]

VERSION_1 = "TBLPROPERTIES ('format-version' = '1')"
COMPACT = "CALL lake.system.rewrite_data_files(table => 'db.{}', options => map('rewrite-all', 'true'))"


def test_after_compaction_across_batches_only_the_changed_batch_changes(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    regions = ("north", "south", "a region whose name is longer than bounds are")
    for region in regions:
        for year in (2020, 2021):
            downloads.write(f"{region}_{year}.json", *({"id": number} for number in range(3)))
    plain = {
        "source": downloads.pattern("{region}_{year}.json"),
        "partitions": {"keys": ["year"]},
        "batch_partition_columns": ["year", "region"],
    }
    bucketed = {**plain, "partitions": {"keys": [{"name": "year", "transform": "bucket[1]"}]}}
    tables = {"v2": {**plain, "partitions": {"keys": []}}, "v3": bucketed, "v1": plain}
    lake_of({"v3": bucketed}, defaults={"format_version": 3}).apply()
    lake = lake_of(tables)
    lake.sql("CREATE TABLE v1 (id bigint, region string, year bigint) PARTITIONED BY (year) " + VERSION_1)
    assert lake.apply().complete
    before = rows_in(lake, "v2")
    assert len(before) == 18
    for table in tables:
        lake.sql(COMPACT.format(table))
        assert len(list(lake.table(table).scan().plan_files())) == (2 if table == "v1" else 1)
    assert not lake.plan().has_work
    snapshots = {table: len(lake.table(table).snapshots()) for table in tables}

    downloads.write(f"{regions[2]}_2020.json", {"id": 7})
    plan = lake.plan()
    assert pending(plan, "v2") == pending(plan, "v3") == {f"2020/{regions[2]}": "load, source changed"}
    receipt = lake.apply()
    outcomes = {table.table: table.batches[0] for table in receipt.tables}
    assert [(outcomes[table].outcome, outcomes[table].rows) for table in ("v2", "v3")] == [(Outcome.DONE, 1)] * 2
    after = sorted(
        [*(row for row in before if row[1:] != (regions[2], 2020)), (7, regions[2], 2020)],
        key=repr,
    )
    for table in ("v2", "v3"):
        assert rows_in(lake, table) == after
        assert rows_by_spark(lake, table) == after
        assert lake.table(table).current_snapshot().summary["total-delete-files"] == "1"
        assert len(lake.table(table).snapshots()) == snapshots[table] + 1
    refused = outcomes["v1"]
    assert (refused.outcome, receipt.complete) == (Outcome.FAILED, False)
    assert "format version 1 has no row deletes" in refused.note
    assert "ALTER TABLE" in refused.note
    assert rows_in(lake, "v1") == before

    # What it says is what helps; and deleted rows stay deleted when the same batch is replaced once more.
    lake.sql("ALTER TABLE v1 SET TBLPROPERTIES ('format-version' = '2')")
    assert lake.retry(["v1"]).complete
    downloads.write(f"{regions[2]}_2020.json", {"id": 8})
    downloads.write("north_2020.json", {"id": 9})
    assert lake.apply().complete
    last = sorted(
        [*(row for row in before if row[2] != 2020 or row[1] == "south"), (8, regions[2], 2020), (9, "north", 2020)],
        key=repr,
    )
    for table in tables:
        assert rows_in(lake, table) == last
        assert rows_by_spark(lake, table) == last


def test_rows_that_another_engine_deleted_by_value_stay_deleted_beside_a_replaced_batch(
    lake_of: LakeOf, downloads: Any, pending: Pending
) -> None:
    for year in (2020, 2021):
        downloads.write(f"{year}.json", {"id": 1}, {"id": 2})
    plain = {"source": downloads.pattern("{year}.json"), "partitions": {"keys": []}, "schema": {"year": "int"}}
    table = {**plain, "batch_partition_columns": ["year"]}
    lake = lake_of({"v2": table})
    lake.apply()
    lake.sql(COMPACT.format("v2"))
    delete_by_value(lake, "v2", "id", 1)
    assert rows_by_spark(lake, "v2") == [(2, 2020), (2, 2021)]

    downloads.write("2021.json", {"id": 1}, {"id": 3})
    assert pending(lake.plan()) == {"2021": "load, source changed, needs --overwrite-edits"}
    assert lake.apply(overwrite_edits=True).complete
    assert rows_by_spark(lake, "v2") == [(1, 2021), (2, 2020), (3, 2021)]
    assert not lake.plan().has_work


def rows_by_spark(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, lake.sql(f"SELECT * FROM {table}").collect()), key=repr)


def delete_by_value(lake: Lake, name: str, column: str, value: int) -> None:
    """An equality delete, as streaming engines write them and Spark and PyIceberg do not."""
    table = lake.table(name)
    field = table.schema().find_field(column)
    path = Path(table.location().removeprefix("file:"), "data", "by-value-deletes.parquet")
    identified = pa.field(column, pa.int64(), metadata={b"PARQUET:field_id": str(field.field_id).encode()})
    pq.write_table(pa.table([pa.array([value])], pa.schema([identified])), path)
    described = {
        "spec-id": 0,
        "content": "equality-deletes",
        "file-path": str(path),
        "file-format": "parquet",
        "partition": [],
        "file-size-in-bytes": path.stat().st_size,
        "record-count": 1,
        "equality-ids": [field.field_id],
    }
    jvm: Any = lake.spark._jvm
    iceberg = jvm.org.apache.iceberg
    native = iceberg.spark.Spark3Util.loadIcebergTable(lake.spark._jsparkSession, f"lake.db.{name}")
    node = iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper().readTree(json.dumps(described))
    native.newRowDelta().addDeletes(iceberg.ContentFileParser.fromJson(node, native.specs())).commit()


def test_format_version_1_replaces_whole_files(lake_of: LakeOf, downloads: Any, rows_in: Rows) -> None:
    for year in (2020, 2021):
        downloads.write(f"{year}.json", {"id": 1}, {"id": 2})
    table = {"source": downloads.pattern("{year}.json"), "partitions": {"keys": ["year"]}}
    lake = lake_of({"t": table})
    lake.sql("CREATE NAMESPACE db")
    lake.sql("CREATE TABLE t (id bigint, year bigint) PARTITIONED BY (year) " + VERSION_1)
    lake.apply()
    downloads.write("2021.json", {"id": 3})
    assert lake.apply().complete
    assert rows_in(lake, "t") == [(1, 2020), (2, 2020), (3, 2021)]
    assert lake.table("t").format_version == 1


def test_batches_found_in_the_content_follow_their_rows_from_file_to_file(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    def sale(number: int, day: str | None, paid: bool | None) -> dict[str, Any]:
        return {"id": number, "day": day, "paid": paid}

    first = downloads.write("a.json", sale(1, "2024-01-01", True), sale(2, "2024-01-02", False))
    downloads.write("b.json", sale(3, "2024-01-02", False), sale(4, None, None))
    lake = lake_of(
        {
            "t": {
                "source": downloads.pattern("*.json"),
                "schema": {"day": "date", "paid": "boolean"},
                "partitions": {"keys": [{"name": "day", "transform": "month"}]},
                "batch_partition_columns": ["day", "paid"],
                "incremental_keys": ["day"],
            }
        }
    )
    plan = lake.plan()
    assert {batch.key.items: batch.files for batch in plan.tables[0].batches} == {
        (("day", None), ("paid", None)): 1,
        (("day", "2024-01-01"), ("paid", True)): 1,
        (("day", "2024-01-02"), ("paid", False)): 2,
    }
    assert lake.apply().complete
    assert [row[0] for row in rows_in(lake, "t")] == [1, 2, 3, 4]
    assert not lake.plan().has_work

    # Row 1 moves to another day, row 2 to another year; the file's old batches are done anew too.
    downloads.write("a.json", sale(1, "2024-01-02", False), sale(2, "2023-12-31", True))
    plan = lake.plan()
    assert pending(plan) == {
        "2023-12-31/True": "load, new",
        "2024-01-02/False": "load, source changed",
        "2024-01-01/True": "remove, source changed",
    }
    assert {batch.changes for batch in plan.tables[0].batches if str(batch.reason) != "new"} == {(f"changed {first}",)}
    assert lake.apply().complete
    assert [(row[0], str(row[1])) for row in rows_in(lake, "t")] == [
        (1, "2024-01-02"),
        (2, "2023-12-31"),
        (3, "2024-01-02"),
        (4, "None"),
    ]
    assert not lake.plan().has_work

    # A file that cannot be read any more is no removal: what was loaded from it stays until it can be.
    broken = downloads.tear("b.json", '{"id": 3, "day": "2024-01')
    plan = lake.plan()
    assert pending(plan) == {
        "2024-01-02/False": "load, source changed, blocked",
        "null/null": "remove, source changed, blocked",
    }
    assert [path for path, _ in plan.tables[0].bad_files] == [broken]
    assert not lake.apply(prune=True).complete
    assert [row[0] for row in rows_in(lake, "t")] == [1, 2, 3, 4]
    downloads.write("b.json", sale(3, "2024-01-02", False))
    assert lake.apply().complete
    assert [row[0] for row in rows_in(lake, "t")] == [1, 2, 3]


def test_a_table_without_batch_columns_is_one_batch(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    downloads.write("a.json", {"id": 1, "kind": "x"})
    downloads.write("b.json", {"id": 2, "kind": "y"})
    table = {
        "source": downloads.pattern("*.json"),
        "partitions": {"keys": ["kind"]},
        "batch_partition_columns": [],
    }
    lake = lake_of({"t": table})
    assert pending(lake.plan()) == {"": "load, new"}
    lake.apply()
    downloads.write("b.json", {"id": 3, "kind": "z"})
    receipt = lake.apply()
    assert [(str(batch.key), batch.rows) for batch in receipt.tables[0].batches] == [("{all}", 2)]
    assert rows_in(lake, "t") == [(1, "x"), (3, "z")]
    lake.sql("INSERT INTO t VALUES (9, 'x')")
    downloads.write("a.json", {"id": 4, "kind": "x"})
    assert pending(lake.plan()) == {"": "load, source changed, needs --overwrite-edits"}


def test_keys_are_tracked_by_other_columns_than_batches_are_cut_by(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    for year in (2020, 2021):
        for region in ("n", "s"):
            rows = [{"id": number, "kind": kind} for number, kind in enumerate("xyx")]
            downloads.write(f"{region}_{year}.json", *rows)
    source = downloads.pattern("{region}_{year}.json")
    cut = {"source": source, "partitions": {"keys": ["year"]}, "batch_partition_columns": ["year", "region"]}
    lake = lake_of(
        {
            "subset": {**cut, "incremental_keys": ["year"]},
            "other": {**cut, "incremental_keys": ["kind"]},
            "more": {**cut, "batch_partition_columns": ["year"], "incremental_keys": ["year", "region"]},
        }
    )
    receipt = lake.apply()
    assert receipt.complete
    assert {table.table: len(table.batches) for table in receipt.tables} == {"subset": 4, "other": 4, "more": 2}
    marked = lake.sql(
        "SELECT table_name, key FROM relayout_ledger LATERAL VIEW explode(incremental_keys) AS key ORDER BY 1, 2"
    ).collect()
    assert {(row[0], row[1]) for row in marked} == {
        ("more", '{"year":2020,"region":"n"}'),
        ("more", '{"year":2020,"region":"s"}'),
        ("more", '{"year":2021,"region":"n"}'),
        ("more", '{"year":2021,"region":"s"}'),
        ("other", '{"kind":"x"}'),
        ("other", '{"kind":"y"}'),
        ("subset", '{"year":2020}'),
        ("subset", '{"year":2021}'),
    }
    assert not lake.plan().has_work
    downloads.write("n_2020.json", {"id": 5, "kind": "z"})
    assert [pending(lake.plan(), name) for name in ("subset", "other", "more")] == [
        {"2020/n": "load, source changed"},
        {"2020/n": "load, source changed"},
        {"2020": "load, source changed"},
    ]
    assert lake.apply().complete
    for name in ("subset", "other", "more"):
        assert len(rows_in(lake, name)) == 10
    assert not lake.plan().has_work


def test_other_batch_columns_load_the_same_rows_once(lake_of: LakeOf, downloads: Any, rows_in: Rows) -> None:
    for year in (2020, 2021):
        downloads.write(f"{year}.json", *({"id": number, "kind": kind} for number, kind in enumerate("xyx")))
    table = {"source": downloads.pattern("{year}.json"), "partitions": {"keys": ["year"]}}
    lake = lake_of({"t": table})
    lake.apply()
    before = rows_in(lake, "t")
    finer = lake_of({"t": {**table, "batch_partition_columns": ["kind"]}})
    receipt = finer.apply()
    assert [(str(batch.key), batch.rows) for batch in sorted(receipt.tables[0].batches, key=str)] == [
        ("{kind=x}", 4),
        ("{kind=y}", 2),
    ]
    assert rows_in(finer, "t") == before
    assert not finer.plan().has_work
