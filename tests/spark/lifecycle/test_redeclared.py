"""A declaration that changes: types, mapped columns, layout; readers always see whole batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayout.api import Lake
from relayout.commit.receipts import Migration, Outcome
from relayout.errors import SchemaConflict
from relayout.ingest.plan import Change

pytestmark = pytest.mark.spark

LakeOf = Callable[..., Lake]
Rows = Callable[[Lake, str], list[tuple[Any, ...]]]
Pending = Callable[..., dict[str, str]]

FIVE_LEVELS = ["year", "geo_fips_set", "tablename", "line_code", "geo_fips"]
INCOME = {
    "schema": {"year": "int", "geo_fips": "string", "line_code": "int", "value": "long"},
    "batch_partition_columns": ["year"],
}


def income_files(downloads: Any, years: range) -> None:
    """5 tables of 5 lines of 16 regions, of counties and of states: 800 rows in 10 files for each year."""
    for year in years:
        for kind in ("COUNTY", "STATE"):
            for table in ("CAINC1", "CAINC4", "CAINC5", "CAINC6", "CAINC30"):
                rows = [
                    {"line_code": line, "geo_fips": f"0{geo:04d}", "value": line * geo}
                    for line in range(1, 6)
                    for geo in range(1001, 1033, 2)
                ]
                downloads.write(f"{table}_{year}_{kind}.json", *rows)


def test_five_partition_levels_become_two_and_every_row_and_edit_is_still_there(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    income_files(downloads, range(2019, 2023))
    source = downloads.pattern("{tablename}_{year}_{geo_fips_set}.json")
    deep = {**INCOME, "source": source, "partitions": {"keys": FIVE_LEVELS}}
    lake = lake_of({"income": deep})
    plan = lake.plan()
    assert any("keep geo_fips as plain columns" in advice for advice in plan.tables[0].advice)
    assert plan.tables[0].forecast.files == 3_200
    lake.apply()
    assert len(list(lake.table("income").scan().plan_files())) == 3_200
    lake.sql("UPDATE income SET value = -1 WHERE year = 2020 AND line_code = 1 AND geo_fips = '01001'")
    lake.sql(
        "INSERT INTO income BY NAME SELECT line_code, geo_fips, value, 'X' AS tablename, 2030 AS year, geo_fips_set "
        "FROM income WHERE year = 2021 AND tablename = 'CAINC1' AND line_code = 1"
    )
    downloads.remove("CAINC1_2022_STATE.json")
    before = rows_in(lake, "income")

    flat = {**deep, "partitions": {"keys": ["year", "geo_fips"]}}
    lake = lake_of({"income": flat})
    plan = lake.plan()
    (table,) = plan.tables
    assert (table.change, table.layout_before, table.layout) == (
        Change.RELAYOUT,
        "year / geo_fips_set / tablename / line_code / geo_fips",
        "year / geo_fips",
    )
    assert pending(plan) == {
        "2019": "load, layout changed",
        "2020": "rewrite, layout changed",
        "2021": "load, layout changed",
        "2022": "rewrite, layout changed",
    }
    receipt = lake.apply()
    assert receipt.complete
    assert receipt.tables[0].migration == Migration(
        layout_before="year / geo_fips_set / tablename / line_code / geo_fips",
        layout_after="year / geo_fips",
        files_before=3_232,
        files_after=4 * 16 + 32,
        rows_before=3_232,
        rows_after=3_232,
        keys_before=3_232,
        keys_after=3_232,
    )
    assert receipt.tables[0].migration.verified
    assert rows_in(lake, "income") == before
    assert not lake.plan().has_work
    assert {task.file.spec_id for task in lake.table("income").scan(row_filter="year < 2030").plan_files()} == {1}

    # The order of levels is nothing that a reader could tell.
    swapped = lake_of({"income": {**flat, "partitions": {"keys": ["geo_fips", "year"]}}})
    assert not swapped.plan().has_work

    # What was rewritten from the table still knows its sources.
    changed = downloads.write("CAINC4_2022_STATE.json", {"line_code": 1, "geo_fips": "01001", "value": 5})
    (batch,) = lake.plan().tables[0].batches
    assert batch.changes == (f"changed {changed}", f"removed {downloads.folder / 'CAINC1_2022_STATE.json'}")


def test_another_sort_order_lays_every_batch_out_anew(lake_of: LakeOf, downloads: Any, pending: Pending) -> None:
    for year in (2020, 2021):
        downloads.write(f"{year}.json", *({"id": number * 7 % 10} for number in range(10)))
    table = {"source": downloads.pattern("{year}.json"), "partitions": {"keys": ["year"]}}
    lake = lake_of({"t": table})
    lake.apply()
    lake = lake_of({"t": {**table, "sort": ["id desc"]}})
    plan = lake.plan()
    assert (plan.tables[0].change, plan.tables[0].layout) == (Change.RELAYOUT, "year, sorted by id desc")
    assert pending(plan) == {"2020": "load, layout changed", "2021": "load, layout changed"}
    receipt = lake.apply()
    assert (receipt.tables[0].migration.files_before, receipt.tables[0].migration.files_after) == (2, 2)
    assert [row["id"] for row in lake.table("t").scan(row_filter="year == 2020").to_arrow().to_pylist()] == list(
        range(9, -1, -1)
    )
    assert not lake.plan().has_work


def test_types_and_mapped_columns_that_change_load_every_batch_anew(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    for year in (2020, 2021):
        downloads.write(f"{year}.json", {"code": "01001", "value": 12})
    table = {"source": downloads.pattern("{year}.json"), "partitions": {"keys": ["year"]}, "schema": {"value": "int"}}
    lake = lake_of({"t": table})
    lake.apply()
    assert rows_in(lake, "t") == [("01001", 12, 2020), ("01001", 12, 2021)]

    wider = {**table, "schema": {"value": "long"}, "columns": {"unit": "'usd'", "double": "value * 2"}}
    lake = lake_of({"t": wider})
    plan = lake.plan()
    assert (plan.tables[0].change, plan.tables[0].schema_changes) == (
        Change.EVOLVE,
        ("add unit string", "add double long", "widen value from int to long"),
    )
    assert pending(plan) == {"2020": "load, schema changed", "2021": "load, schema changed"}
    assert (plan.tables[0].engine, plan.tables[0].engine_reason) == (
        "spark",
        "columns unit, double are Spark SQL expressions",
    )
    assert lake.apply().complete
    assert rows_in(lake, "t") == [("01001", 12, 2020, "usd", 24), ("01001", 12, 2021, "usd", 24)]
    assert not lake.plan().has_work

    # A column that only new files have is added; what was loaded before reads as null.
    downloads.write("2022.json", {"code": "01003", "value": 13, "note": "new"})
    plan = lake.plan()
    assert (plan.tables[0].schema_changes, pending(plan)) == (("add note string",), {"2022": "load, new"})
    assert lake.apply().complete
    assert [row[-1] for row in rows_in(lake, "t")] == [None, None, "new"]

    narrower = lake_of({"t": {**wider, "schema": {"value": "date"}}})
    with pytest.raises(SchemaConflict, match="column 'value' is long in the table and date in the declaration"):
        narrower.plan()


def test_a_rollback_opens_what_it_undid_and_expiry_forgets_nothing(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    downloads.write("2020.json", {"id": 1})
    lake = lake_of({"t": {"source": downloads.pattern("{year}.json"), "partitions": {"keys": ["year"]}}})
    first = lake.apply().tables[0].snapshot_ids[0]
    downloads.write("2021.json", {"id": 2})
    lake.apply()
    changed = downloads.write("2020.json", {"id": 3})
    lake.apply()
    assert rows_in(lake, "t") == [(2, 2021), (3, 2020)]
    lake.sql(f"CALL lake.system.rollback_to_snapshot('db.t', {first})")
    plan = lake.plan()
    assert pending(plan) == {"2020": "load, source changed", "2021": "load, new"}
    assert plan.tables[0].batches[0].changes == (f"changed {changed}",)
    assert lake.apply().count(Outcome.DONE) == 2
    assert rows_in(lake, "t") == [(2, 2021), (3, 2020)]

    lake.sql("CALL lake.system.expire_snapshots(table => 'db.t', older_than => now(), retain_last => 1)")
    assert len(list(lake.table("t").snapshots())) == 1
    assert not lake.plan().has_work
    changed = downloads.write("2021.json", {"id": 4})
    plan = lake.plan()
    assert (pending(plan), plan.tables[0].batches[0].changes) == (
        {"2021": "load, source changed"},
        (f"changed {changed}",),
    )
    assert lake.apply().complete
    lake.invalidate("t", ["year=2020"])
    assert pending(lake.plan()) == {"2020": "load, invalidated"}
    assert lake.apply().count(Outcome.DONE) == 1
    assert (lake.plan().has_work, rows_in(lake, "t")) == (False, [(3, 2020), (4, 2021)])
