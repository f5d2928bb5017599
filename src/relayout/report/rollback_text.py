"""What a rollback did, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from relayout.commit.receipts import AlternateReceipt, Outcome
from relayout.report.printable import one_line, printable


class RolledBack(Protocol):
    """A table and the snapshots before and after."""

    @property
    def table(self) -> str: ...
    @property
    def before(self) -> int | None: ...
    @property
    def after(self) -> int: ...
    @property
    def alternates(self) -> Sequence[AlternateReceipt]: ...


def rollback_text(done: RolledBack) -> str:
    """From where to where, and how each alternate followed."""
    name = printable(done.table)
    if done.before == done.after:
        lines = [f"{name}: snapshot {done.after} is the current one already"]
    else:
        lines = [f"{name}: back from snapshot {done.before} to {done.after}"]
    for one in done.alternates:
        told = f"behind: {one_line(one.note)}" if one.outcome is Outcome.FAILED else one.action
        lines.append(f"  alternate {printable(one.name)}: {told}")
    lines.append("next: relayout plan")
    return "\n".join(lines)
