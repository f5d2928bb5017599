"""The log's lines, word by word: people search for them."""

from __future__ import annotations

import pytest

from relayout.commit.receipts import BatchReceipt, Outcome, TableReceipt
from relayout.report.log_lines import (
    batch_done,
    batch_failed,
    batch_retried,
    snapshot_committed,
    table_begins,
    table_complete,
    with_level,
)
from relayout.table.batches import BatchKey

YEAR_2020 = BatchKey((("year", 2020),))


def done(**told: object) -> BatchReceipt:
    values = {"key": YEAR_2020, "action": "load", "outcome": Outcome.DONE, "files": 3_200, "seconds": 1.2}
    return BatchReceipt(**values | told)  # type: ignore[arg-type]


def receipt(*outcomes: Outcome, error: str = "") -> TableReceipt:
    batches = tuple(done(outcome=outcome) for outcome in outcomes)
    return TableReceipt("regional_income", "none", batches, 372.0, error=error)


def test_a_run_reads_from_beginning_to_end() -> None:
    lines = [
        table_begins("regional_income", "by_fips"),
        batch_done(1, 5, done()),
        batch_done(2, 5, done(key=BatchKey((("year", 2021),)), seconds=1.1)),
        table_complete(receipt(*[Outcome.DONE] * 5), "by_fips"),
        snapshot_committed(12345),
    ]
    assert [with_level("info", line) for line in lines] == [
        "INFO  Materializing partition alternate 'by_fips' for table 'regional_income'",
        "INFO    Batch 1/5: {year=2020} - 1.2s, 3200 files",
        "INFO    Batch 2/5: {year=2021} - 1.1s, 3200 files",
        "INFO  Partition alternate 'by_fips' complete: 5 batches in 6m 12s",
        "INFO  Iceberg snapshot committed: snap-12345",
    ]


@pytest.mark.parametrize(
    ("level", "shown"), [("info", "INFO  text"), ("warning", "WARN  text"), ("error", "ERROR text")]
)
def test_levels_take_five_cells(level: str, shown: str) -> None:
    assert with_level(level, "text") == shown


def test_the_base_table_is_named_as_such() -> None:
    assert table_begins("regional_income") == "Materializing table 'regional_income'"
    assert table_complete(receipt(Outcome.DONE)) == "Table 'regional_income' complete: 1 batches in 6m 12s"


def test_words_do_not_change_with_their_number() -> None:
    assert batch_done(1, 1, done(files=1)) == "  Batch 1/1: {year=2020} - 1.2s, 1 files"


def test_a_batch_that_was_not_loaded_says_why() -> None:
    skipped = done(outcome=Outcome.SKIPPED, note="loaded by another run\nmeanwhile")
    assert batch_done(3, 5, skipped) == "  Batch 3/5: {year=2020} - skipped: loaded by another run; meanwhile"
    assert batch_done(3, 5, done(action="remove", files=0)) == "  Batch 3/5: {year=2020} - 1.2s, removed"
    assert batch_failed(3, 5, YEAR_2020, "torn gzip") == "  Batch 3/5: {year=2020} - failed: torn gzip"


def test_a_retry_says_which_attempt_comes_when() -> None:
    assert batch_retried(YEAR_2020, "no space\nleft", 2, 3, 1.0) == (
        "  Batch {year=2020} failed, attempt 2/3 in 1.0s: no space; left"
    )


def test_a_table_with_failures_is_incomplete() -> None:
    assert table_complete(receipt(Outcome.DONE, Outcome.FAILED, Outcome.SKIPPED)) == (
        "Table 'regional_income' incomplete: 1 batches in 6m 12s, 1 failed, 1 skipped"
    )
    assert table_complete(receipt(error="what   no")) == "Table 'regional_income' incomplete: 0 batches in 6m 12s"
    assert (
        table_complete(receipt(Outcome.SKIPPED)) == "Table 'regional_income' complete: 0 batches in 6m 12s, 1 skipped"
    )


def test_names_from_outside_cannot_break_a_line() -> None:
    key = BatchKey((("place", "a\nb"),))
    lines = [
        table_begins("t\n", "a\r"),
        batch_done(1, 1, done(key=key)),
        batch_done(1, 1, done(key=key, outcome=Outcome.SKIPPED, note="x\x1b[2J")),
        batch_failed(1, 1, key, "x\r\ny"),
        batch_retried(key, "x\ny", 2, 3, 1.0),
    ]
    assert all(line.isprintable() for line in lines)
