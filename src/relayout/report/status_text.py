"""The lake for a reader: a line per table, and for tables that were named all that is known of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from relayout.read.census import CLASS_NAMES
from relayout.report.columns import GAP, aligned, line_of, widths_of, wrapped
from relayout.report.printable import one_line, printable
from relayout.report.sections import MARGIN, WIDTH, joined, labelled, several_lines
from relayout.report.status_alternates import alternate_lines
from relayout.table.quantities import count_text, duration_text, size_text
from relayout.upkeep.health import Health
from relayout.upkeep.lake_status import (
    BatchState,
    BatchStatus,
    Files,
    LakeStatus,
    LedgerStatus,
    SpecStatus,
    TableStatus,
)

_OVERVIEW = ("table", "health", "rows", "files", "average", "snapshot", "batches", "layout")
_OVERVIEW_NUMBERS = (1, 2, 3, 4, 5)
_NARROWEST_LAYOUT = 24
_DRIFTED = "≠ "
_SPEC = ("spec", "layout", "files", "size", *CLASS_NAMES)
_BATCH = ("batch", "state", "rows", "files", "size", "loaded", "snapshot")
_STATES = (BatchState.DONE, BatchState.FAILED, BatchState.INVALIDATED)
_MOST_BATCHES = 20
_NONE = "-"


def status_text(status: LakeStatus, *, width: int = WIDTH) -> str:
    """An overview, then details where tables were named; the last line is the command that helps most."""
    where = printable(f"Lake {status.warehouse}, catalog {status.catalog}, namespace {status.namespace}")
    blocks = [[where + ("" if status.catalog_exists else " (no catalog there yet)")]]
    if status.tables:
        blocks.append(_overview_lines(status, width))
    if status.detailed:
        blocks += [_detail_lines(table, status.at_ms, width) for table in status.tables]
    else:
        blocks += [
            [f"Table {printable(table.name)}", *several_lines("problem", table.problem)]
            for table in status.tables
            if table.problem
        ]
    return joined([*blocks, [f"Next: {printable(status.next)}" if status.next else "Nothing to do"]])


# The overview.


def _overview_lines(status: LakeStatus, width: int) -> list[str]:
    rows = [_OVERVIEW, *(_overview_cells(table, status.at_ms) for table in status.tables)]
    *widths, widest_layout = widths_of(rows)
    room = width - sum(widths) - len(GAP) * len(widths)
    # Only layouts are cut, and not to nothing: rather the line runs over.
    widths.append(min(widest_layout, max(room, _NARROWEST_LAYOUT)))
    lines = [line_of(row, widths, _OVERVIEW_NUMBERS) for row in rows]
    return [*lines, f"{_DRIFTED}not as declared"] if any(table.drifted for table in status.tables) else lines


def _overview_cells(table: TableStatus, at_ms: int) -> tuple[str, ...]:
    files = table.files
    average = files.average_bytes if files else None
    layout = table.layout or table.declared_layout
    return (
        printable(table.name),
        str(table.health.score) if table.health else _NONE,
        _rows_text(files) if files else _NONE,
        f"{files.data_files:,}" if files else _NONE,
        _NONE if average is None else size_text(average),
        _ago(table.snapshot.timestamp_ms, at_ms) if table.snapshot else _NONE,
        _ledger_text(table.ledger) if table.exists else "not loaded yet",
        printable(f"{_DRIFTED if table.drifted else ''}{layout}"),
    )


def _rows_text(files: Files) -> str:
    return f"{'' if files.rows_are_exact else '~'}{files.rows:,}"


def _ago(then_ms: int, at_ms: int) -> str:
    return duration_text(max(0, at_ms - then_ms) / 1000)


def _ledger_text(ledger: LedgerStatus) -> str:
    counts = Counter(batch.state for batch in ledger.batches)
    return ", ".join(f"{counts[state]:,} {state}" for state in _STATES if counts[state]) or _NONE


# One table.


def _detail_lines(table: TableStatus, at_ms: int, width: int) -> list[str]:
    lines = [f"Table {printable(table.name)}" + ("" if table.declared else " (not declared)")]
    lines += several_lines("problem", table.problem)
    lines += labelled("location", table.location, width)
    if table.format_version is not None:
        lines += labelled("format", f"version {table.format_version}", width)
    if table.snapshot:
        age = _ago(table.snapshot.timestamp_ms, at_ms)
        lines += labelled("snapshot", f"{table.snapshot.snapshot_id} ({table.snapshot.operation}), {age} ago", width)
    lines += labelled("layout", table.layout, width)
    if table.drifted or not table.layout:
        lines += labelled("declared", table.declared_layout, width)
    if table.files:
        lines += labelled("files", _files_text(table.files), width)
        lines += labelled("rows", _rows_text(table.files), width)
    lines += _ledger_lines(table.ledger, at_ms, width)
    lines += _health_lines(table.health, width) if table.health else []
    parts = (
        alternate_lines(table.alternates, at_ms, width),
        _spec_lines(table.specs, table.files, width),
        _batch_lines(table.ledger, at_ms, width),
    )
    for part in parts:
        lines += ["", *part] if part else []
    return lines


def _files_text(files: Files) -> str:
    text = f"{count_text(files.data_files, 'data file')}, {size_text(files.size_bytes)}"
    if files.average_bytes is not None:
        text += f", {size_text(files.average_bytes)} on average"
    if files.census is not None:
        text += f", {files.census.small_files:,} of them below {size_text(files.small_below_bytes)}"
    return text + (f"; {count_text(files.delete_files, 'delete file')}" if files.delete_files else "")


def _ledger_lines(ledger: LedgerStatus, at_ms: int, width: int) -> list[str]:
    told = [_ledger_text(ledger)] if ledger.batches else []
    if ledger.last_run_ms is not None:
        told.append(f"last run {_ago(ledger.last_run_ms, at_ms)} ago")
    if ledger.unrecorded:
        told.append(f"{count_text(ledger.unrecorded, 'stamp')} not in the ledger table yet, the next apply adds them")
    return labelled("ledger", "; ".join(told), width)


def _health_lines(health: Health, width: int) -> list[str]:
    lines = labelled("health", f"{health.score} of 100", width)
    for loss in health.losses:
        first = f"{MARGIN * 2}{-loss.points:>4}  "
        lines += wrapped(f"{printable(loss.what)}: {printable(loss.fix)}", width, " " * len(first), first)
    return lines


def _spec_lines(specs: Sequence[SpecStatus], files: Files | None, width: int) -> list[str]:
    census = files.census if files else None
    if census is None:
        return []
    counted = {spec.spec_id: spec for spec in census.specs}
    rows: list[Sequence[str]] = [_SPEC]
    for spec in specs:
        found = counted.get(spec.spec_id)
        number = f"{spec.spec_id} (current)" if spec.is_current else str(spec.spec_id)
        numbers = [_NONE] * (2 + len(CLASS_NAMES))
        if found is not None:
            numbers = [f"{found.data_files:,}", size_text(found.size_bytes), *(f"{n:,}" for n in found.histogram)]
        rows.append((number, printable(spec.layout), *numbers))
    return [MARGIN + line for line in aligned(rows, width - len(MARGIN), range(2, len(_SPEC)))]


def _batch_lines(ledger: LedgerStatus, at_ms: int, width: int) -> list[str]:
    """The batches that are not as they should be, then the others up to a limit."""
    ordered = [batch for state in (*_STATES[1:], *_STATES[:1]) for batch in ledger.of(state)]
    if not ordered:
        return []
    shown, rest = ordered[:_MOST_BATCHES], ordered[_MOST_BATCHES:]
    rows = [_BATCH, *(_batch_cells(batch, at_ms) for batch in shown)]
    # Nothing is cut here: these are the values that other commands are given.
    widths = widths_of(rows)
    lines = [MARGIN + line_of(_BATCH, widths, (2, 3, 4, 5))]
    for batch, cells in zip(shown, rows[1:], strict=True):
        lines.append(MARGIN + line_of(cells, widths, (2, 3, 4, 5)))
        if batch.error:
            when = "" if batch.failed_at_ms is None else f", {_ago(batch.failed_at_ms, at_ms)} ago"
            lines += wrapped(f"failed{when}: {one_line(batch.error)}", width, MARGIN * 3, MARGIN * 2)
    if rest:
        lines.append(f"{MARGIN}… and {len(rest):,} more: {_ledger_text(LedgerStatus(tuple(rest)))}")
    return lines


def _batch_cells(batch: BatchStatus, at_ms: int) -> tuple[str, ...]:
    return (
        printable(str(batch.key)),
        batch.state,
        _NONE if batch.rows is None else f"{batch.rows:,}",
        _NONE if batch.files is None else f"{batch.files:,}",
        _NONE if batch.size_bytes is None else size_text(batch.size_bytes),
        _NONE if batch.loaded_at_ms is None else f"{_ago(batch.loaded_at_ms, at_ms)} ago",
        _NONE if batch.snapshot_id is None else str(batch.snapshot_id),
    )
