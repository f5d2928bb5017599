"""Receipts as `relayout apply` and `relayout retry` show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayout.commit.receipts import BatchReceipt, Migration, Outcome, Receipt, TableReceipt
from relayout.report.receipt_text import receipt_text
from relayout.table.batches import BatchKey

Golden = Callable[[str, str], None]


def done(year: int, **told: Any) -> BatchReceipt:
    values: dict[str, Any] = {
        "key": BatchKey((("year", year),)),
        "action": "load",
        "outcome": Outcome.DONE,
        "rows": 1_234,
        "files": 1,
        "size_bytes": 4_058,
        "source_files": 2,
        "source_bytes": 13_772,
        "seconds": 1.2,
        "snapshot_id": 7_113_000_000_000_000_000 + year,
    }
    return BatchReceipt(**values | told)


def left(year: int, outcome: Outcome, note: str) -> BatchReceipt:
    return BatchReceipt(BatchKey((("year", year),)), "load", outcome, seconds=0.4, note=note)


def run(*tables: TableReceipt, dropped: tuple[str, ...] = (), run_id: str = "6f0c") -> Receipt:
    return Receipt("2afb", run_id, tables, 372.0, dropped)


def test_everything_was_done(golden: Golden) -> None:
    income = TableReceipt("regional_income", "create", tuple(done(year) for year in range(2019, 2024)), 6.4)
    counties = TableReceipt("counties", "none", (done(2020, key=BatchKey()),), 0.9)
    golden("receipt_all_done.txt", receipt_text(run(income, counties, TableReceipt("employment", "none", (), 0.1))))


def test_some_batches_failed(golden: Golden) -> None:
    torn = "downloads/CAINC1_2021.json.gz: torn gzip: the file ends before its data does"
    income = TableReceipt(
        "regional_income",
        "evolve",
        (
            done(2018, action="remove", rows=0, files=0, size_bytes=0, source_files=0, source_bytes=0),
            done(2019, seconds=75.0, source_files=3_200, source_bytes=1_500_000_000),
            done(2020),
            left(2021, Outcome.FAILED, torn),
            left(2022, Outcome.FAILED, "the task died\njava.lang.OutOfMemoryError: Java heap space"),
            left(2023, Outcome.SKIPPED, "removed downloads/CAINC1_2023.json; needs --prune"),
            *(left(1900 + year, Outcome.FAILED, "no space left on device") for year in range(20)),
        ),
        372.0,
        bad_files=(("downloads/CAINC1_2021.json.gz", "torn gzip: the file ends before its data does"),),
    )
    employment = TableReceipt(
        "employment", "none", (), 0.2, error="what   no source file matches\nwhere  *.csv\nnext   mount the disk"
    )
    golden("receipt_partly_failed.txt", receipt_text(run(income, employment, dropped=("old_income",))))


def test_a_migration_that_was_verified(golden: Golden) -> None:
    moved = Migration(
        "year / geo_fips_set / tablename / line_code / geo_fips", "year / geo_fips",
        700_000, 16_000, 12_300_000, 12_300_000, 3_200, 3_200,
    )  # fmt: skip
    batches = tuple(done(year, files=3_200, rows=2_460_000) for year in range(2019, 2024))
    table = TableReceipt("regional_income", "change layout", batches, 372.0, migration=moved)
    golden("receipt_migration.txt", receipt_text(run(table)))


def test_a_migration_that_lost_rows_is_not_called_verified() -> None:
    moved = Migration("year", "unpartitioned", 5, 1, 10, 9, 5, 5)
    text = receipt_text(run(TableReceipt("t", "change layout", (done(2020),), 1.0, migration=moved)))
    assert "  migration  not verified: rows and distinct keys must be as many as before, unless sources" in text
    assert "verified: the" not in text


def test_a_run_that_had_nothing_to_do(golden: Golden) -> None:
    nothing = run(TableReceipt("regional_income", "none", (), 0.0), run_id="")
    golden("receipt_nothing_to_do.txt", receipt_text(nothing))


@pytest.mark.parametrize(
    ("table", "last"),
    [
        (TableReceipt("t", "none", (done(1),), 1.0), "Next: relayout status"),
        (TableReceipt("t", "none", (done(1), left(2, Outcome.FAILED, "no")), 1.0), "Next: relayout retry"),
        (
            TableReceipt("t", "none", (left(2, Outcome.FAILED, "no"),), 1.0, bad_files=(("a", "b"),)),
            "Next: correct or remove the bad source files, then relayout retry",
        ),
        (
            TableReceipt("t", "none", (), 0.0, bad_files=(("a.json", "cut"),)),
            "Next: correct or remove the bad source files, then relayout apply",
        ),
        (
            TableReceipt("t", "none", (left(2, Outcome.SKIPPED, "needs --overwrite-edits"),), 1.0),
            "Next: relayout apply --overwrite-edits",
        ),
        (
            TableReceipt("t", "none", (), 0.0, error="what   no"),
            "Next: correct what is named above, then relayout apply",
        ),
        (TableReceipt("t", "none", (), 0.0), "Nothing to do: what is declared was loaded before"),
    ],
)
def test_the_last_line_is_the_next_command(table: TableReceipt, last: str) -> None:
    assert receipt_text(run(table)).splitlines()[-1] == last


def test_names_and_reasons_from_outside_cannot_act_on_the_terminal() -> None:
    hostile = TableReceipt(
        "t\x1b[2J",
        "none",
        (left(1, Outcome.FAILED, "a\x07\nb\u202e"),),
        1.0,
        error="x\x1b]0;y",
        bad_files=(("\r", "z"),),
    )
    text = receipt_text(run(hostile, dropped=("d\x00",)))
    assert all(line.isprintable() for line in text.split("\n"))
    assert "- {year=1}: a\\x07; b\\u202e" in text
