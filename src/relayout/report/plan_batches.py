"""The pending batches of one table as text: those that need attention first, the others up to a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from relayout.ingest.plan import OVERWRITE_EDITS, PRUNE, Action, PlannedBatch
from relayout.report.columns import fitted, line_of, widths_of, wrapped
from relayout.report.printable import printable
from relayout.report.sections import MARGIN
from relayout.table.quantities import count_text, estimate_text, size_text

_HEADINGS = ("batch", "why", "action", "files", "size", "rows")
_NUMBERS = (3, 4, 5)
_DETAIL = MARGIN * 2
_MOST_CHANGES = 4

_WITHOUT = {
    PRUNE: "left as it is unless --prune is given: rows would go whose source files are gone",
    OVERWRITE_EDITS: "left as it is unless --overwrite-edits is given: rows would go that somebody changed",
}


def batch_lines(batches: Sequence[PlannedBatch], most: int, width: int) -> list[str]:
    """A line per batch with what is to be known of it below; the rest is counted by reason."""
    ordered = sorted(batches, key=_urgency)
    shown, rest = ordered[:most], ordered[most:]
    rows = [_HEADINGS, *(_cells(batch) for batch in shown)]
    widths = fitted(widths_of(rows), width - len(MARGIN))
    lines = [MARGIN + line_of(row, widths, _NUMBERS) for row in rows]
    found = [lines[0]] if shown else []
    for batch, line in zip(shown, lines[1:], strict=True):
        found += [line, *_details(batch, width)]
    return [*found, *([_counted(rest)] if rest else [])]


def _urgency(batch: PlannedBatch) -> int:
    """What stops, what waits for a word, what is unusual, then the others in their own order."""
    return next((place for place, word in enumerate((batch.blocked, batch.needs, batch.warnings)) if word), 3)


def _cells(batch: PlannedBatch) -> tuple[str, ...]:
    rows = "?" if batch.rows_estimate is None else estimate_text(batch.rows_estimate)
    files = f"{batch.files:,}" if batch.action is Action.LOAD else "-"
    return printable(str(batch.key)), batch.reason, batch.action, files, size_text(batch.size_bytes), rows


def _details(batch: PlannedBatch, width: int) -> list[str]:
    told = [*_few(batch.changes), *batch.warnings]
    if batch.parts > 1:
        told.append(f"read in {batch.parts:,} parts, so that memory stays bounded")
    if batch.blocked:
        told += [f"blocked: {batch.blocked}", "correct or remove this file; the batch waits until then"]
    elif batch.needs:
        told.append(_WITHOUT.get(batch.needs, f"left as it is unless {batch.needs} is given"))
    return [line for text in told for line in wrapped(printable(text), width, _DETAIL + MARGIN, _DETAIL)]


def _few(changes: Sequence[str]) -> list[str]:
    """The first changes and the last, which says why where a word is needed."""
    if len(changes) <= _MOST_CHANGES + 1:
        return list(changes)
    return [*changes[: _MOST_CHANGES - 1], "…", changes[-1]]


def _counted(rest: Sequence[PlannedBatch]) -> str:
    reasons = Counter(batch.reason for batch in rest)
    blocked = sum(1 for batch in rest if batch.blocked)
    needing = Counter(batch.needs for batch in rest if batch.needs and not batch.blocked)
    warned = sum(1 for batch in rest if batch.warnings)
    text = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    marks = [
        *([f"{blocked:,} blocked"] if blocked else []),
        *(f"{count:,} left without {flag}" for flag, count in needing.items()),
        *([count_text(warned, "with a warning", "with warnings")] if warned else []),
    ]
    return f"{MARGIN}… and {len(rest):,} more: {text}" + (f" ({', '.join(marks)})" if marks else "")
