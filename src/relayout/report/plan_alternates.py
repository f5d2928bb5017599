"""The alternates of a table in a plan: what each costs in storage, and which predicates it will speed up."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.report.sections import labelled, limited, several_lines
from relayout.table.alternate_plans import AlternatePlan, Step
from relayout.table.quantities import count_text, size_text
from relayout.upkeep.alternate_status import AMPLIFICATION_BUDGET

_MOST_STALE = 5


def alternate_lines(alternates: Sequence[AlternatePlan], width: int) -> list[str]:
    """A few lines for each; one that is refused comes with what to write in its place."""
    lines: list[str] = []
    for told in alternates:
        lines += labelled("alternate", f"{told.name}: {told.layout}", width)
        lines += labelled("", _state(told), width)
        if told.step is Step.REFUSED:
            lines += several_lines("", told.replacement)
            continue
        lines += labelled("", _gain(told), width)
    total = 1 + sum(told.amplification or 0.0 for told in alternates if told.step is not Step.REFUSED)
    if total > AMPLIFICATION_BUDGET:
        text = f"about {total:.1f} times the table in all layouts, over the budget of {AMPLIFICATION_BUDGET:.0f}"
        lines += labelled("storage", text, width)
    return lines


def _state(told: AlternatePlan) -> str:
    match told.step:
        case Step.REFUSED:
            text = f"refused: {told.reason}; the table itself is not held up"
            return f"{text}. Write this instead:" if told.replacement else text
        case Step.CREATE:
            return f"{told.reason}{_storage(told)}"
        case Step.REFRESH:
            batches = f", {count_text(len(told.stale), 'batch', 'batches')}: " if told.stale else ""
            return f"{told.reason}{batches}{', '.join(limited(told.stale, _MOST_STALE))}{_storage(told)}"
        case Step.NONE:
            return f"in step{_storage(told)}"


def _storage(told: AlternatePlan) -> str:
    if told.size_bytes is None:
        return ""
    times = f", {told.amplification:.1f} times the table" if told.amplification is not None else ""
    return f"; {'about ' if told.step is Step.CREATE else ''}{size_text(told.size_bytes)}{times}"


def _gain(told: AlternatePlan) -> str:
    return "speeds up " + ", ".join(told.helps) if told.helps else "speeds up nothing that the table itself does not"
