"""A receipt for a reader: per table what was done, what was not and why, and what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from relayout.commit.receipts import AlternateReceipt, BatchReceipt, Migration, Outcome, Receipt, TableReceipt
from relayout.ingest.advice import LARGEST_BATCH_BYTES, LARGEST_BATCH_FILES
from relayout.ingest.plan import OVERWRITE_EDITS, PRUNE, Action, Change
from relayout.report.columns import aligned
from relayout.report.printable import one_line, printable
from relayout.report.sections import MARGIN, WIDTH, bad_file_lines, joined, labelled, limited, listed, several_lines
from relayout.report.targets import BATCH_SECONDS_TARGET, loaded
from relayout.table.quantities import count_text, duration_text, size_text

_MOST_REASONS = 10
_MOST_KEYS = 5
_MOST_SNAPSHOTS = 3
_CHANGES = {
    Change.CREATE.value: "was created",
    Change.EVOLVE.value: "has new or wider columns",
    Change.RELAYOUT.value: "has the new layout",
}


def receipt_text(receipt: Receipt, *, width: int = WIDTH) -> str:
    """Every table with its numbers and its failures; the last lines are the totals and the next command."""
    blocks = [_table_lines(table, width) for table in receipt.tables]
    if receipt.dropped:
        blocks.append([f"Dropped: {printable(', '.join(limited(receipt.dropped, _MOST_KEYS)))}"])
    return joined([*blocks, _ending(receipt)])


# One table.


def _table_lines(table: TableReceipt, width: int) -> list[str]:
    lines = [f"Table {printable(table.table)}: {_state(table)}", *several_lines("error", table.error)]
    if table.batches and not table.error:
        lines += labelled("table", _CHANGES.get(table.change, ""), width)
    lines += labelled("written", _written_text(table.batches), width)
    lines += labelled("snapshots", _snapshots_text(table.snapshot_ids), width)
    lines += labelled("per batch", _largest_text(loaded(table)), width)
    removed = [str(batch.key) for batch in table.of(Outcome.DONE) if batch.action == Action.REMOVE]
    lines += labelled("removed", ", ".join(limited(removed, _MOST_KEYS)), width)
    lines += _migration_lines(table.migration, width) if table.migration else []
    lines += listed("alternates", [_alternate_text(one) for one in table.alternates], width)
    lines += listed("failed", _by_reason(table.of(Outcome.FAILED)), width, _MOST_REASONS)
    lines += listed("skipped", _by_reason(table.of(Outcome.SKIPPED)), width, _MOST_REASONS)
    return lines + bad_file_lines(table.bad_files, {batch.note for batch in table.batches}, width)


def _alternate_text(told: AlternateReceipt) -> str:
    if told.outcome is Outcome.FAILED:
        return f"{told.name}: behind, the next apply tries again: {one_line(told.note)}"
    written = f"{count_text(told.rows, 'row')} in {count_text(told.files, 'file')}, {size_text(told.size_bytes)}"
    return f"{told.name}: {told.action}, {written} in {duration_text(told.seconds)}"


def _state(table: TableReceipt) -> str:
    if not table.batches:
        if table.error:
            return "not worked on"
        return f"alternates brought up in {duration_text(table.seconds)}" if table.alternates else "nothing to do"
    return f"{_outcomes_text(table.batches)} in {duration_text(table.seconds)}"


def _outcomes_text(batches: Sequence[BatchReceipt]) -> str:
    """`3 batches done, 1 failed`."""
    counts = Counter(batch.outcome for batch in batches)
    found = [(counts[outcome], outcome) for outcome in Outcome if counts[outcome]]
    first, *rest = found
    return ", ".join(
        [f"{count_text(first[0], 'batch', 'batches')} {first[1]}", *(f"{count:,} {outcome}" for count, outcome in rest)]
    )


def _written_text(batches: Sequence[BatchReceipt]) -> str:
    files = sum(batch.files for batch in batches)
    rows = sum(batch.rows for batch in batches)
    size = sum(batch.size_bytes for batch in batches)
    return f"{count_text(rows, 'row')} in {count_text(files, 'file')}, {size_text(size)}" if files else ""


def _snapshots_text(ids: Sequence[int]) -> str:
    if len(ids) <= _MOST_SNAPSHOTS:
        return ", ".join(str(number) for number in ids)
    return f"{len(ids):,}, the first {ids[0]}, the last {ids[-1]}"


def _largest_text(batches: Sequence[BatchReceipt]) -> str:
    if not batches:
        return ""
    seconds = max(batch.seconds for batch in batches)
    files = max(batch.source_files for batch in batches)
    size = max(batch.source_bytes for batch in batches)
    return (
        f"at most {duration_text(seconds)}, {count_text(files, 'source file')}, {size_text(size)} "
        f"(targets: {BATCH_SECONDS_TARGET}s, {LARGEST_BATCH_FILES:,}, {size_text(LARGEST_BATCH_BYTES)})"
    )


def _by_reason(batches: Iterable[BatchReceipt]) -> list[str]:
    """Each reason once, behind the first batches that it holds for."""
    keys: dict[str, list[str]] = {}
    for batch in batches:
        keys.setdefault(one_line(batch.note), []).append(str(batch.key))
    return [f"{', '.join(limited(held, _MOST_KEYS))}: {reason}" for reason, held in keys.items()]


def _migration_lines(told: Migration, width: int) -> list[str]:
    counted = (
        ("data files", told.files_before, told.files_after),
        ("rows", told.rows_before, told.rows_after),
        ("distinct keys", told.keys_before, told.keys_after),
    )
    rows = [("", "before", "after"), *((name, f"{before:,}", f"{after:,}") for name, before, after in counted)]
    verdict = (
        "verified: the rows and distinct keys are as many as before"
        if told.verified
        else "not verified: rows and distinct keys must be as many as before, unless sources changed too"
    )
    return [
        *labelled("layout", f"{told.layout_before}  ->  {told.layout_after}", width),
        *labelled("migration", verdict, width),
        *(MARGIN * 2 + line for line in aligned(rows, width, right=(1, 2))),
    ]


# The whole run.


def _ending(receipt: Receipt) -> list[str]:
    batches = [batch for table in receipt.tables for batch in table.batches]
    if not batches:
        return [_next(receipt)]
    parts = [f"{_outcomes_text(batches)} in {duration_text(receipt.seconds)}", _written_text(batches)]
    return [f"In all: {'; '.join(part for part in parts if part)}", _next(receipt)]


def _next(receipt: Receipt) -> str:
    bad = any(table.bad_files for table in receipt.tables)
    first = "correct or remove the bad source files, then " if bad else ""
    if any(table.error for table in receipt.tables):
        return "Next: correct what is named above, then relayout apply"
    if receipt.count(Outcome.FAILED):
        return f"Next: {first}relayout retry"
    alternates = [one for table in receipt.tables for one in table.alternates]
    if any(one.outcome is Outcome.FAILED for one in alternates):
        return f"Next: {first}relayout apply"
    if bad:
        return f"Next: {first}relayout apply"
    notes = [batch.note for table in receipt.tables for batch in table.of(Outcome.SKIPPED)]
    needed = {word for note in notes for word in note.rpartition("needs ")[2].split()}
    flags = [flag for flag in (PRUNE, OVERWRITE_EDITS) if flag in needed]
    if flags:
        return f"Next: relayout apply {' '.join(flags)}"
    if receipt.count(Outcome.DONE) or receipt.dropped or alternates:
        return "Next: relayout status"
    return "Nothing to do: what is declared was loaded before"
