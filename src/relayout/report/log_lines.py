"""The lines a run writes to its log, in one shape each, so that they can be searched for.

Words never change with their number (`1 files`), and names from outside cannot break a line.
"""

from __future__ import annotations

from relayout.commit.receipts import BatchReceipt, Outcome, TableReceipt
from relayout.ingest.plan import Action
from relayout.report.printable import one_line, printable
from relayout.table.batches import BatchKey
from relayout.table.quantities import duration_text

_LEVELS = {"warning": "WARN"}


def with_level(level: str, text: str) -> str:
    """A line as a plain log shows it: `INFO  Materializing table 'regional_income'`."""
    return f"{_LEVELS.get(level, level.upper()):<5} {text}"


def table_begins(table: str, alternate: str = "") -> str:
    """The first line of a layout; `alternate` is empty for the base table."""
    if alternate:
        return f"Materializing partition alternate '{printable(alternate)}' for table '{printable(table)}'"
    return f"Materializing table '{printable(table)}'"


def batch_done(number: int, total: int, batch: BatchReceipt) -> str:
    """A batch that needs nothing more: the files count those written; one that was left aside says why."""
    if batch.outcome is Outcome.SKIPPED:
        return f"{_batch(number, total, batch.key)} - skipped: {one_line(batch.note)}"
    result = "removed" if batch.action == Action.REMOVE else f"{batch.files} files"
    return f"{_batch(number, total, batch.key)} - {duration_text(batch.seconds)}, {result}"


def batch_retried(key: BatchKey, reason: str, attempt: int, attempts: int, delay_seconds: float) -> str:
    """A batch failed, and its next attempt, counted from 1, follows after the delay."""
    then = f"attempt {attempt}/{attempts} in {duration_text(delay_seconds)}"
    return f"  Batch {printable(str(key))} failed, {then}: {one_line(reason)}"


def batch_failed(number: int, total: int, key: BatchKey, reason: str) -> str:
    """The batch is left for `relayout retry`; the others go on."""
    return f"{_batch(number, total, key)} - failed: {one_line(reason)}"


def snapshot_committed(snapshot_id: int) -> str:
    """A snapshot became the table's current one."""
    return f"Iceberg snapshot committed: snap-{snapshot_id}"


def table_complete(receipt: TableReceipt, alternate: str = "") -> str:
    """The last line of a layout; it is `incomplete` when something failed."""
    layout = f"Partition alternate '{printable(alternate)}'" if alternate else f"Table '{printable(receipt.table)}'"
    done, failed, skipped = (sum(1 for _ in receipt.of(outcome)) for outcome in Outcome)
    rest = [f"{count} {word}" for count, word in ((failed, "failed"), (skipped, "skipped")) if count]
    text = ", ".join([f"{done} batches in {duration_text(receipt.seconds)}", *rest])
    return f"{layout} {'incomplete' if failed or receipt.error else 'complete'}: {text}"


def _batch(number: int, total: int, key: BatchKey) -> str:
    return f"  Batch {number}/{total}: {printable(str(key))}"
