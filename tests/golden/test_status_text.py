"""The lake as `relayout status` shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayout.read.census import FileCensus, SpecFiles
from relayout.report.status_text import status_text
from relayout.table.batches import BatchKey
from relayout.upkeep.health import Debts, health_of
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

Golden = Callable[[str, str], None]

NOW = 1_700_000_000_000
HOUR = 3_600_000
SNAPSHOT = SnapshotStatus(7_113_000_000_000_002_023, NOW - 2 * HOUR - 300_000, "append")


def batch(year: int, state: BatchState = BatchState.DONE, **told: Any) -> BatchStatus:
    values: dict[str, Any] = {
        "rows": 1_234,
        "files": 2,
        "size_bytes": 4_058,
        "snapshot_id": 7_113_000_000_000_000_000 + year,
        "loaded_at_ms": NOW - 3 * HOUR,
    }
    return BatchStatus(BatchKey((("year", year),)), state, **values | told)


@pytest.fixture
def healthy() -> TableStatus:
    census = FileCensus((SpecFiles(0, 5, 20_290, (5, 0, 0, 0, 0)),), 6_170, 5, 0, 5)
    return TableStatus(
        name="regional_income",
        declared=True,
        managed=True,
        exists=True,
        location="file:/data/lake/econ/regional_income",
        format_version=2,
        snapshot=SNAPSHOT,
        files=Files(5, 20_290, 6_170, True, 0, 134_217_728, census),
        layout="year, sorted by geo_fips",
        declared_layout="year, sorted by geo_fips",
        specs=(SpecStatus(0, "year", True),),
        health=health_of("regional_income", Debts(census, batches=5)),
        ledger=LedgerStatus(tuple(batch(year) for year in range(2019, 2024)), last_run_ms=NOW - 2 * HOUR),
    )


@pytest.fixture
def troubled() -> TableStatus:
    census = FileCensus(
        (
            SpecFiles(0, 300, 60_000_000_000, (0, 0, 40, 200, 60)),
            SpecFiles(2, 1_100, 2_200_000_000, (1_100, 0, 0, 0, 0)),
        ),
        rows=12_300_000,
        small_files=1_140,
        excess_files=1_020,
        lone_files=20,
        position_delete_files=30,
        deleted_rows=123_000,
    )
    failed = batch(2021, BatchState.FAILED, error="a.json: line 3: cut JSON\n(at 7)", failed_at_ms=NOW - 60_000)
    never = batch(
        2022, BatchState.FAILED, rows=None, files=None, size_bytes=None, snapshot_id=None, loaded_at_ms=None, error="no"
    )
    loaded = tuple(batch(year) for year in range(1990, 2020))
    return TableStatus(
        name="employment",
        declared=True,
        managed=True,
        exists=True,
        next="relayout retry",
        location="file:/data/lake/econ/employment",
        format_version=2,
        snapshot=SNAPSHOT,
        files=Files(1_400, 62_200_000_000, 12_177_000, False, 30, 134_217_728, census),
        layout="year / quarter",
        declared_layout="year / quarter, sorted by geo_fips, occupation, employer and several more columns",
        drifted=True,
        specs=(
            SpecStatus(0, "year", False),
            SpecStatus(1, "unpartitioned", False),
            SpecStatus(2, "year / quarter", True),
        ),
        health=health_of("employment", Debts(census, drifted=True, batches=33, failed=2, invalidated=1)),
        ledger=LedgerStatus((*loaded, batch(2020, BatchState.INVALIDATED), failed, never), 2, NOW - 60_000),
    )


@pytest.fixture
def others() -> tuple[TableStatus, ...]:
    return (
        TableStatus("counties", True, declared_layout="unpartitioned", next="relayout apply counties"),
        TableStatus("broken", True, exists=True, problem="what   its metadata cannot be read\nnext   relayout doctor"),
        TableStatus(
            "theirs", False, exists=True, snapshot=SNAPSHOT, files=Files(1, 10, 1, True, 0, 8, None), layout="day(at)"
        ),
    )


def lake(*tables: TableStatus, **told: Any) -> LakeStatus:
    values = {"at_ms": NOW, "warehouse": "./lake", "catalog": "lake", "namespace": "econ", "catalog_exists": True}
    return LakeStatus(**values | {"tables": tables} | told)


def test_the_overview_has_a_line_per_table(
    golden: Golden, healthy: TableStatus, troubled: TableStatus, others: tuple[TableStatus, ...]
) -> None:
    golden("status_overview.txt", status_text(lake(healthy, troubled, *others)))


def test_the_details_of_named_tables(golden: Golden, healthy: TableStatus, troubled: TableStatus) -> None:
    golden("status_detail.txt", status_text(lake(healthy, troubled, detailed=True)))


def test_named_tables_that_are_not_there_or_not_readable(golden: Golden, others: tuple[TableStatus, ...]) -> None:
    golden("status_detail_without_data.txt", status_text(lake(*others, detailed=True)))


def test_a_lake_that_is_well_needs_nothing(healthy: TableStatus) -> None:
    assert status_text(lake(healthy)).splitlines()[-1] == "Nothing to do"


def test_a_lake_that_was_never_written_to() -> None:
    new = TableStatus("t", True, declared_layout="year", next="relayout apply")
    lines = status_text(lake(new, catalog_exists=False)).splitlines()
    assert lines[0] == "Lake ./lake, catalog lake, namespace econ (no catalog there yet)"
    assert lines[-1] == "Next: relayout apply"


def test_a_clock_that_runs_behind_shows_no_negative_age(healthy: TableStatus) -> None:
    assert "0.0s" in status_text(lake(healthy, at_ms=0))
    assert " -" not in status_text(lake(healthy, at_ms=0))


def test_names_and_reasons_from_outside_cannot_act_on_the_terminal() -> None:
    hostile = TableStatus(
        "t\x1b[2J", True, exists=True, location="\x07", layout="a\nb", problem="x\x1b]0;y",
        ledger=LedgerStatus((batch(1, BatchState.FAILED, error="\u202e"),)),
    )  # fmt: skip
    for detailed in (False, True):
        text = status_text(lake(hostile, warehouse="\x9b", detailed=detailed))
        assert all(line.isprintable() for line in text.split("\n"))
