"""The ingestion plan for a reader: per table what happens and why, what it costs, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator

from relayout.ingest.advice import Forecast
from relayout.ingest.plan import OVERWRITE_EDITS, PRUNE, Action, Change, Drop, IngestPlan, PlannedBatch, TablePlan
from relayout.report.plan_alternates import alternate_lines
from relayout.report.plan_batches import batch_lines
from relayout.report.printable import printable
from relayout.report.sections import WIDTH, bad_file_lines, joined, labelled, limited, listed, several_lines
from relayout.table.quantities import count_text, estimate_text, size_text

_MOST_COLUMNS = 12
_MOST_GAPS = 10


def plan_text(plan: IngestPlan, *, most_batches: int = 20, width: int = WIDTH) -> str:
    """Every table with its batches, `most_batches` of them at most; the last line is the next command."""
    blocks = [_table_lines(table, most_batches, width) for table in plan.tables]
    if plan.drops:
        drops = [f"{_drop_text(drop)} ({_rows_text(drop.rows)})" for drop in plan.drops]
        blocks.append(["No longer declared; only apply --prune drops them", *listed("tables", drops, width)])
    return joined([*blocks, _ending(plan)])


def losses(plan: IngestPlan, *, prune: bool, overwrite_edits: bool) -> list[str]:
    """What `apply` with these flags would take away for good: tables, batches, rows that somebody changed."""
    given = {*([PRUNE] if prune else []), *([OVERWRITE_EDITS] if overwrite_edits else [])}
    found = [f"{_drop_text(drop, 'table ')} is dropped ({_rows_text(drop.rows)})" for drop in plan.drops if prune]
    found += [
        f"{table.table}: {_loss(batch)}"
        for table in plan.tables
        for batch in table.batches
        if batch.needs and batch.flags <= given and not batch.blocked
    ]
    return [printable(text) for text in limited(found, _MOST_GAPS)]


def _drop_text(drop: Drop, kind: str = "") -> str:
    return drop.alternate or f"{kind}{drop.table}"


def _loss(batch: PlannedBatch) -> str:
    if batch.action is Action.REMOVE:
        return f"batch {batch.key} is removed ({_rows_text(batch.rows_estimate)})"
    lost = {
        PRUNE: "the rows of source files that are gone",
        OVERWRITE_EDITS: "what was changed in it since it was loaded",
    }
    return f"batch {batch.key} loses {' and '.join(text for flag, text in lost.items() if flag in batch.flags)}"


def _rows_text(rows: int | None) -> str:
    return "rows not known" if rows is None else count_text(rows, "row")


# One table.


def _table_lines(table: TablePlan, most_batches: int, width: int) -> list[str]:
    if table.problem:
        return [f"Table {printable(table.table)}: cannot be planned", *several_lines("problem", table.problem)]
    lines = [f"Table {printable(table.table)}: {_state(table)}"]
    if table.has_work:
        lines += _work_lines(table, width)
    if table.batches:
        lines += ["", *batch_lines(table.batches, most_batches, width)]
    remarks = [*alternate_lines(table.alternates, width), *_remark_lines(table, width)]
    if table.batches and remarks:
        lines.append("")
    return lines + remarks


def _state(table: TablePlan) -> str:
    done = f"{table.done:,} done"
    if not table.has_work:
        return f"nothing to do, {count_text(table.done, 'batch', 'batches')} done"
    behind = sum(1 for alternate in table.alternates if alternate.has_work)
    if behind and not table.batches and table.change is Change.NONE:
        return f"{count_text(behind, 'alternate')} pending, {count_text(table.done, 'batch', 'batches')} done"
    return f"{count_text(len(table.batches), 'batch', 'batches')} pending, {done}"


def _work_lines(table: TablePlan, width: int) -> list[str]:
    return [
        *labelled("layout", table.layout, width),
        *labelled("until now", table.layout_before, width),
        *labelled("table", "; ".join(_table_changes(table)), width),
        *labelled("engine", ": ".join(text for text in (table.engine, table.engine_reason) if text), width),
    ]


def _table_changes(table: TablePlan) -> Iterator[str]:
    match table.change:
        case Change.CREATE:
            columns = limited([f"{name} {kind}" for name, kind in table.schema], _MOST_COLUMNS)
            yield f"is created with {count_text(len(table.schema), 'column')}: {', '.join(columns)}"
        case Change.RELAYOUT:
            yield "gets the new layout; its batches move one by one, readers see each in its old or its new files"
        case Change.EVOLVE | Change.NONE:
            pass
    yield from table.schema_changes


def _remark_lines(table: TablePlan, width: int) -> list[str]:
    return [
        *(labelled("forecast", _forecast_text(table.forecast), width) if table.forecast else []),
        *listed("advice", table.advice, width),
        *labelled("gaps", ", ".join(limited(table.gaps, _MOST_GAPS)), width),
        *listed("kept", table.kept_without_source, width),
        *bad_file_lines(table.bad_files, {batch.blocked for batch in table.batches}, width),
        *listed("notes", table.notes, width),
    ]


def _forecast_text(forecast: Forecast) -> str:
    files = f"{estimate_text(forecast.files)} {'file' if forecast.files == 1 else 'files'}"
    text = f"{files} of {size_text(forecast.average_bytes)} on average, {size_text(forecast.size_bytes)} in all"
    if forecast.rows is not None:
        text += f", {estimate_text(forecast.rows)} rows"
    if forecast.depth:
        text += f"; {count_text(forecast.depth, 'partition level')}"
    if forecast.values_per_level:
        text += f", values seen: {', '.join(f'{name} {values:,}' for name, values in forecast.values_per_level)}"
    return text


# The whole plan.


def _ending(plan: IngestPlan) -> list[str]:
    if not plan.has_work:
        return [_next(plan)]
    cost = plan.cost
    behind = sum(1 for table in plan.tables for alternate in table.alternates if alternate.has_work)
    parts = [count_text(cost.batches, "batch", "batches")] if cost.batches or not behind else []
    parts += [count_text(behind, "alternate")] if behind else []
    if cost.batches:
        parts += [count_text(cost.files, "source file"), size_text(cost.size_bytes)]
        parts += [f"{estimate_text(cost.rows)} rows"] if cost.rows is not None else []
    return [f"To do: {', '.join(parts)} (plan {plan.plan_id})", _next(plan)]


def _next(plan: IngestPlan) -> str:
    batches = [batch for table in plan.tables for batch in table.batches]
    needed = {batch.needs for batch in batches if not batch.blocked} | ({PRUNE} if plan.drops else set())
    flags = " ".join(flag for flag in (PRUNE, OVERWRITE_EDITS) if flag in needed)
    behind = any(alternate.has_work for table in plan.tables for alternate in table.alternates)
    if behind or any(batch.runs for batch in batches) or any(table.change is not Change.NONE for table in plan.tables):
        return "Next: relayout apply" + (f" (with {flags} for what is marked so)" if flags else "")
    if flags:
        return f"Next: relayout apply {flags}"
    if any(table.problem or table.bad_files for table in plan.tables) or batches:
        return "Next: correct what is named above, then relayout apply"
    done = sum(table.done for table in plan.tables)
    tables = count_text(len(plan.tables), "table")
    return f"Nothing to do: {count_text(done, 'batch', 'batches')} in {tables} done"
