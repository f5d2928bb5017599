"""The alternates of a table in its status: what they take, how fresh they are, whether anybody uses them."""

from __future__ import annotations

from relayout.report.columns import aligned
from relayout.report.printable import printable
from relayout.report.sections import MARGIN, labelled, limited
from relayout.table.quantities import duration_text, size_text
from relayout.table.routing_counts import RoutingCounts
from relayout.upkeep.alternate_status import (
    AMPLIFICATION_BUDGET,
    AlternatesStatus,
    AlternateStatus,
)

_HEADS = ("alternate", "freshness", "rows", "files", "size", "of table", "considered", "matched", "used", "layout")
_NUMBERS = (2, 3, 4, 5, 6, 7, 8)
_MOST_BATCHES = 5


def alternate_lines(status: AlternatesStatus, at_ms: int, width: int) -> list[str]:
    """A line for each alternate, then what is stale, what is too much, and what nobody uses."""
    if not status.alternates:
        return []
    rows = [_HEADS, *(_cells(one) for one in status.alternates)]
    lines = [MARGIN + line for line in aligned(rows, width - len(MARGIN), right=_NUMBERS)]
    counted = any(one.use is not None for one in status.alternates)
    for one in status.alternates:
        lines += labelled("", _remark(one, at_ms, counted=counted), width)
    if status.amplification is not None:
        verdict = "over" if status.over_budget else "within"
        text = f"{status.amplification:.1f} times the table in all layouts"
        lines += labelled("storage", f"{text}, {verdict} the budget of {AMPLIFICATION_BUDGET:.0f}", width)
    return lines


def _cells(one: AlternateStatus) -> tuple[str, ...]:
    counts = [f"{count:,}" for count in (one.use.considered, one.use.matched, one.use.used)] if one.use else ["-"] * 3
    return (
        printable(one.name),
        one.freshness.value,
        f"{one.rows:,}",
        f"{one.files:,}",
        size_text(one.size_bytes),
        "-" if one.amplification is None else f"{one.amplification:.2f}x",
        *counts,
        printable(one.layout),
    )


def _remark(one: AlternateStatus, at_ms: int, *, counted: bool) -> str:
    found = []
    if one.batches:
        listed = ", ".join(limited([str(key) for key in one.batches], _MOST_BATCHES))
        found.append(f"{'only these batches are fresh' if one.only_these else 'stale batches'}: {listed}")
    if not one.declared:
        found.append("no longer declared, `relayout apply --prune` drops it")
    if one.use is not None:
        found.append(_use_text(one.use, at_ms))
    elif counted:
        found.append("no query has looked at it")
    return f"{one.name}: {'; '.join(found)}" if found else ""


def _use_text(use: RoutingCounts, at_ms: int) -> str:
    if use.last_used_ms:
        return f"last used {duration_text(max(0, at_ms - use.last_used_ms) / 1000)} ago"
    return f"never used by the {use.considered:,} queries that looked at it"
