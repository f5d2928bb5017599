"""`relayout status`: what is declared, what is there, what is wrong with it and what helps; no engine is started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import StringType

from relayout.config import from_mapping
from relayout.config.model import LEDGER_TABLE
from relayout.errors import EnvironmentProblem, MissingError
from relayout.jobs import status as status_job
from relayout.jobs.status import read_status
from relayout.ledger.records import State
from relayout.table.batches import BatchKey
from relayout.upkeep.health import Loss
from relayout.upkeep.lake_status import BatchState, SpecStatus

INCOME = {"source": "in/*_{year}.json", "partitions": {"keys": [{"name": "year", "type": "INTEGER"}]}}


def test_a_lake_that_was_never_made_shows_what_is_declared_and_makes_nothing(tmp_path: Path) -> None:
    config = from_mapping({"namespace": "econ", "tables": {"income": INCOME}}, tmp_path)
    status = read_status(config)
    assert (status.catalog_exists, status.namespace, status.warehouse) == (False, "econ", str(tmp_path / "lake"))
    (income,) = status.tables
    assert (income.name, income.declared, income.exists, income.declared_layout) == ("income", True, False, "year")
    assert status.next == "relayout apply"
    assert list(tmp_path.iterdir()) == []


def test_a_loaded_table_in_order_needs_nothing(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income", **{"relayout.managed": "true"})
    loads = [lake.load("income", {"year": year}) for year in (2021, 2020)]
    status = read_status(lake.config)
    (income,) = status.tables
    assert (income.declared, income.managed, income.exists, income.problem) == (True, True, True, "")
    assert income.snapshot is not None
    assert (income.snapshot.snapshot_id, income.snapshot.operation) == (loads[-1], "append")
    assert income.files is not None
    assert (income.files.data_files, income.files.rows, income.files.rows_are_exact) == (2, 6, True)
    assert (income.layout, income.declared_layout, income.drifted) == ("year", "year", False)
    assert income.specs == (SpecStatus(0, "year", True),)
    assert income.health is not None
    assert income.health.score == 100
    assert [(batch.key, batch.state, batch.snapshot_id, batch.rows) for batch in income.ledger.batches] == [
        (BatchKey((("year", 2020),)), BatchState.DONE, loads[1], 3),
        (BatchKey((("year", 2021),)), BatchState.DONE, loads[0], 3),
    ]
    assert status.next == ""


def test_declared_tables_come_first_and_what_is_relayouts_own_is_left_out(make_lake: Any) -> None:
    lake = make_lake(wages=INCOME, income=INCOME)
    for table in ("income", "archive", "_mv_0123456789abcdefghijklmnopqrstuv"):
        lake.create(table)
    shown = [(table.name, table.declared, table.exists) for table in read_status(lake.config).tables]
    assert shown == [("wages", True, False), ("income", True, True), ("archive", False, True)]


def test_tables_can_be_named_in_full_and_need_not_be_declared(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income")
    lake.create("archive")
    lake.create("income", namespace="old")
    names = ["lake.econ.income", "econ.archive", "old.income", LEDGER_TABLE]
    status = read_status(lake.config, names)
    assert [(table.name, table.declared) for table in status.tables] == [
        ("income", True),
        ("archive", False),
        ("old.income", False),
        (LEDGER_TABLE, False),
    ]
    assert status.detailed


def test_a_table_of_another_namespace_is_not_judged_by_this_ledger(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income", namespace="old")
    lake.record(lake.line("income", {"year": 2020}, State.FAILED, error="torn gzip"))
    (other,) = read_status(lake.config, ["old.income"]).tables
    assert other.ledger.batches == ()


def test_an_unknown_name_is_an_error_that_shows_what_there_is(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("archive")
    with pytest.raises(MissingError) as caught:
        read_status(lake.config, ["incme"])
    assert caught.value.what == "there is no table econ.incme"
    assert caught.value.next == f"tables of econ: archive, income, {LEDGER_TABLE}"
    with pytest.raises(MissingError) as caught:
        read_status(lake.config, ["old.income"])
    assert caught.value.next == "tables of old: none"


def test_a_declared_table_without_a_source_is_not_for_apply_to_make(make_lake: Any) -> None:
    lake = make_lake(orders={"partitions": {"keys": ["day"]}})
    (orders,) = read_status(lake.config).tables
    assert (orders.exists, orders.next) == (False, "")


def test_a_table_whose_metadata_is_gone_is_a_problem_and_hides_no_other(make_lake: Any) -> None:
    lake = make_lake(income=INCOME, wages=INCOME)
    lake.create("income")
    lake.create("wages")
    lake.metadata_file("income").unlink()
    income, wages = read_status(lake.config).tables
    assert (income.exists, income.files, wages.problem) == (True, None, "")
    assert income.problem.startswith("what   the catalog points to metadata of econ.income that does not exist\n")
    assert wages.files is not None


@pytest.mark.parametrize("content", ["", "{", '{"format-version": 2}', "[]", "null"])
def test_damaged_metadata_is_a_problem_and_hides_no_other(make_lake: Any, content: str) -> None:
    lake = make_lake(income=INCOME, wages=INCOME)
    lake.create("income")
    lake.create("wages")
    lake.metadata_file("income").write_text(content, "utf-8")
    income, wages = read_status(lake.config).tables
    assert income.problem.startswith("what   the table cannot be read: its metadata is damaged: ")
    assert "\nwhere  econ.income\nnext   restore the metadata file" in income.problem
    assert wages.problem == ""


def test_a_lost_manifest_is_a_problem(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income")
    lake.load("income", {"year": 2020})
    for manifest in (Path(lake.config.warehouse) / "econ" / "income" / "metadata").glob("*-m0.avro"):
        manifest.unlink()
    (income,) = read_status(lake.config).tables
    assert income.problem.startswith("the table cannot be read: FileNotFoundError")


def test_a_damaged_catalog_is_an_error_and_no_table_problem(make_lake: Any) -> None:
    lake = make_lake()
    (Path(lake.config.warehouse) / "catalog.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4_000)
    with pytest.raises(EnvironmentProblem):
        read_status(lake.config)


def test_a_failed_batch_asks_for_a_retry_before_anything_else(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income", keys=())
    loaded = lake.load("income", {"year": 2020})
    lake.record(lake.line("income", {"year": 2021}, State.FAILED, error="torn gzip"))
    lake.record(lake.line("income", {"year": 2020}, State.INVALIDATED, snapshot_id=loaded))
    status = read_status(lake.config, ["income"])
    (income,) = status.tables
    assert income.drifted
    assert [(str(batch.key), batch.state, batch.error) for batch in income.ledger.batches] == [
        ("{year=2020}", BatchState.INVALIDATED, ""),
        ("{year=2021}", BatchState.FAILED, "torn gzip"),
    ]
    assert income.health is not None
    assert [loss.fix for loss in income.health.losses] == ["relayout apply income", "relayout retry", "relayout apply"]
    assert status.next == "relayout retry"


def test_a_failure_is_shown_for_a_table_that_was_never_made(make_lake: Any) -> None:
    lake = make_lake()
    lake.record(lake.line("income", {"year": 2021}, State.FAILED, error="torn gzip"))
    (income,) = read_status(lake.config).tables
    assert not income.exists
    assert [(str(batch.key), batch.state) for batch in income.ledger.batches] == [("{year=2021}", BatchState.FAILED)]


def test_a_run_that_died_before_the_ledger_asks_for_apply(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income")
    lake.load("income", {"year": 2020}, recorded=False)
    (income,) = read_status(lake.config).tables
    assert (income.ledger.unrecorded, income.ledger.batches[0].in_ledger) == (1, False)
    assert income.next == "relayout apply"


def test_a_table_that_does_not_lie_as_declared_has_drifted(make_lake: Any) -> None:
    lake = make_lake(income={**INCOME, "sort": ["geo_fips"]})
    lake.create("income", keys=("year", "geo_fips"))
    (income,) = read_status(lake.config).tables
    assert (income.layout, income.declared_layout) == ("year / geo_fips", "year, sorted by geo_fips")
    assert income.drifted
    assert income.next == "relayout apply income"


def test_files_of_an_earlier_spec_are_counted_apart_and_asked_to_migrate(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income", keys=("geo_fips", "year"))
    lake.append("income", {"geo_fips": "01001", "value": 1, "year": 2020})
    with lake.table("income").update_spec() as change:
        change.remove_field("geo_fips")
    (income,) = read_status(lake.config).tables
    assert income.specs == (SpecStatus(0, "geo_fips / year", False), SpecStatus(1, "year", True))
    assert income.health is not None
    assert income.health.losses == (
        Loss(15, "100% of the bytes lie in files of earlier partition specs", "relayout compact income --mode migrate"),
    )


def test_a_spec_over_a_dropped_column_still_has_words(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income", {"geo_fips": "string", "region": "string", "year": "int"}, keys=("region", "year"))
    with lake.table("income").update_spec() as change:
        change.remove_field("region")
    with lake.table("income").update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("region")
        change.add_column("name", StringType())
    (income,) = read_status(lake.config).tables
    assert [spec.layout for spec in income.specs] == ["region (column dropped) / year", "year"]


def test_small_is_what_the_policy_says_or_three_quarters_of_the_target(make_lake: Any) -> None:
    lake = make_lake(income={**INCOME, "policy": {"compact_below_mb": 64}}, wages=INCOME)
    lake.create("income")
    lake.create("wages")
    lake.create("archive", **{"write.target-file-size-bytes": "1000"})
    below = {table.name: table.files and table.files.small_below_bytes for table in read_status(lake.config).tables}
    assert below == {"income": 64 << 20, "wages": 384 << 20, "archive": 750}


def test_a_large_table_is_summed_up_unless_it_is_named(make_lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_job, "MOST_FILES_UNASKED", 1)
    lake = make_lake()
    lake.create("income")
    for year in (2020, 2021):
        lake.load("income", {"year": year})
    (told,) = read_status(lake.config).tables
    (counted,) = read_status(lake.config, ["income"]).tables
    assert told.files is not None
    assert counted.files is not None
    assert told.files.census is None
    assert counted.files.census is not None
    assert (told.files.data_files, told.files.rows, told.files.size_bytes, told.files.delete_files) == (
        counted.files.data_files,
        counted.files.rows,
        counted.files.size_bytes,
        counted.files.delete_files,
    )
    assert told.health is not None
    assert not told.health.files_counted


def test_each_table_shows_its_own_part_of_the_ledger_whether_named_or_not(make_lake: Any) -> None:
    lake = make_lake(income=INCOME, wages=INCOME)
    for table, years in (("income", (2020, 2021)), ("wages", (2019,))):
        lake.create(table)
        for year in years:
            lake.load(table, {"year": year})
    overview, named = read_status(lake.config), read_status(lake.config, ["income", "wages"])
    assert [[str(batch.key) for batch in table.ledger.batches] for table in overview.tables] == [
        ["{year=2020}", "{year=2021}"],
        ["{year=2019}"],
    ]
    assert [table.ledger for table in named.tables] == [table.ledger for table in overview.tables]


def test_a_lost_ledger_is_a_problem_of_every_table_that_it_speaks_of(make_lake: Any) -> None:
    lake = make_lake(income=INCOME, wages=INCOME)
    lake.create("income")
    lake.metadata_file(LEDGER_TABLE).unlink()
    for status in (read_status(lake.config), read_status(lake.config, ["income", "wages"])):
        assert [table.problem.splitlines()[0] for table in status.tables] == [
            f"what   the catalog points to metadata of econ.{LEDGER_TABLE} that does not exist"
        ] * 2
        assert [table.exists for table in status.tables] == [True, False]


def test_status_loads_neither_spark_nor_duckdb(make_lake: Any, tmp_path: Path) -> None:
    lake = make_lake()
    lake.create("income")
    lake.load("income", {"year": 2020})
    program = (
        "import json, sys, relayout\n"
        "status = relayout.open(json.loads(sys.argv[1])).status()\n"
        "print(json.dumps([status.tables[0].files.rows, sorted(sys.modules)]))"
    )
    mapping = {"warehouse": lake.config.warehouse, "namespace": "econ", "tables": {"income": INCOME}}
    answer = subprocess.run(
        [sys.executable, "-c", program, json.dumps(mapping)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    rows, modules = json.loads(answer.stdout)
    assert rows == 3
    assert {"pyspark", "py4j", "duckdb"} & set(modules) == set()
