"""The document of `relayout status`: every key is always there, and null says that nobody knows."""

from __future__ import annotations

from relayout.read.census import FileCensus, SpecFiles
from relayout.table.batches import BatchKey
from relayout.upkeep.health import Health, Loss
from relayout.upkeep.lake_status import (
    BatchState,
    BatchStatus,
    Files,
    LakeStatus,
    LedgerStatus,
    SnapshotStatus,
    SpecStatus,
    TableStatus,
)

BATCH = BatchStatus(BatchKey((("year", 2020),)), BatchState.DONE, 96, 2, 4_058, 7, 1_700_000_000_000)
COUNTED = FileCensus((SpecFiles(1, 2, 4_058, (2, 0, 0, 0, 0)),), rows=96, small_files=2)
TABLE = TableStatus(
    name="income",
    declared=True,
    managed=True,
    exists=True,
    next="relayout compact income",
    location="/lake/econ/income",
    format_version=2,
    snapshot=SnapshotStatus(7, 1_700_000_000_000, "overwrite"),
    files=Files(2, 4_058, 96, True, 0, 1_000, COUNTED),
    layout="year",
    declared_layout="year",
    specs=(SpecStatus(0, "unpartitioned", False), SpecStatus(1, "year", True)),
    health=Health((Loss(15, "why", "relayout compact income"),)),
    ledger=LedgerStatus((BATCH,), 0, 1_700_000_000_000),
)


def lake(*tables: TableStatus, detailed: bool = False) -> LakeStatus:
    return LakeStatus(1_700_000_001_000, "/lake", "lake", "econ", True, tables, detailed)


def test_the_whole_document() -> None:
    empty = {"<8M": 0, "8-32M": 0, "32-128M": 0, "128-512M": 0, ">512M": 0}
    told = lake(TABLE).to_json()
    assert {name: value for name, value in told.items() if name != "tables"} == {
        "schema": 1,
        "kind": "status",
        "at_ms": 1_700_000_001_000,
        "warehouse": "/lake",
        "catalog": {"name": "lake", "exists": True},
        "namespace": "econ",
        "next": "relayout compact income",
    }
    (table,) = told["tables"]
    assert table.pop("health")["score"] == 85
    assert table == {
        "table": "income",
        "declared": True,
        "managed": True,
        "exists": True,
        "problem": "",
        "next": "relayout compact income",
        "location": "/lake/econ/income",
        "format_version": 2,
        "snapshot": {"snapshot_id": 7, "timestamp_ms": 1_700_000_000_000, "operation": "overwrite"},
        "rows": 96,
        "rows_exact": True,
        "data_files": 2,
        "bytes": 4_058,
        "average_file_bytes": 2_029,
        "small_files": 2,
        "small_below_bytes": 1_000,
        "delete_files": 0,
        "layout": {"declared": "year", "actual": "year", "drift": False},
        "specs": [
            {
                "spec_id": 0,
                "layout": "unpartitioned",
                "current": False,
                "data_files": 0,
                "bytes": 0,
                "histogram": empty,
            },
            {
                "spec_id": 1,
                "layout": "year",
                "current": True,
                "data_files": 2,
                "bytes": 4_058,
                "histogram": empty | {"<8M": 2},
            },
        ],
        "alternates": [],
        "amplification": None,
        "amplification_budget": 3.0,
        "ledger": {
            "done": 1,
            "failed": 0,
            "invalidated": 0,
            "unrecorded": 0,
            "last_run_ms": 1_700_000_000_000,
            "failures": [],
        },
    }


def test_batches_are_listed_for_those_who_named_the_table() -> None:
    (table,) = lake(TABLE, detailed=True).to_json()["tables"]
    assert table["batches"] == [
        {
            "batch": {"year": 2020},
            "state": "done",
            "rows": 96,
            "files": 2,
            "bytes": 4_058,
            "snapshot_id": 7,
            "loaded_at_ms": 1_700_000_000_000,
            "in_ledger": True,
            "error": "",
            "failed_at_ms": None,
        }
    ]
    assert "batches" not in lake(TABLE).to_json()["tables"][0]


def test_a_table_that_is_not_there_has_the_same_keys() -> None:
    there, missing = lake(TABLE, TableStatus("orders", declared=True)).to_json()["tables"]
    assert there.keys() == missing.keys()
    assert (missing["rows"], missing["data_files"], missing["health"], missing["snapshot"]) == (None, None, None, None)


def test_files_that_were_not_counted_are_null_in_every_spec() -> None:
    files = Files(50_000, 10**9, 96, True, 0, 1_000, None)
    table = TableStatus("income", declared=True, exists=True, files=files, specs=TABLE.specs)
    told = table.to_json(with_batches=False)
    assert (told["data_files"], told["small_files"]) == (50_000, None)
    assert [(spec["data_files"], spec["histogram"]) for spec in told["specs"]] == [(None, None), (None, None)]


def test_the_first_table_that_needs_something_says_what_to_do_next() -> None:
    well = TableStatus("counties", declared=True, exists=True)
    assert lake(well, TABLE).next == "relayout compact income"
    assert lake(well).next == ""
    assert lake().next == ""
