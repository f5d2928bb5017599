"""What a verification found, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from relayout.report.printable import one_line, printable
from relayout.table.quantities import count_text


class Checked(Protocol):
    """One alternate that was compared with its table."""

    @property
    def name(self) -> str: ...
    @property
    def table(self) -> str: ...
    @property
    def compared(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def differences(self) -> Sequence[str]: ...


class Verified(Protocol):
    """All that was compared."""

    @property
    def table(self) -> str: ...
    @property
    def snapshot_id(self) -> int | None: ...
    @property
    def clean(self) -> bool: ...
    @property
    def alternates(self) -> Sequence[Checked]: ...


def alternates_check_text(found: Verified) -> str:
    """One line for each alternate, and one for each difference."""
    lines = [f"{printable(found.table)} at snapshot {found.snapshot_id}"]
    if not found.alternates:
        lines.append("  has no alternates to compare with")
    for one in found.alternates:
        lines += _lines(one)
    if not found.clean:
        lines.append(f"next: relayout sql 'DROP TABLE `{_first_wrong(found)}`', then relayout apply builds it anew")
    return "\n".join(lines)


def _lines(one: Checked) -> Iterator[str]:
    verdict = count_text(len(one.differences), "difference") if one.differences else "equal"
    rows = f", {count_text(one.rows, 'row')}" if one.rows else ""
    yield f"  alternate {printable(one.name)}: {verdict} ({printable(one.compared)}{rows})"
    yield from (f"    {one_line(text)}" for text in one.differences)


def _first_wrong(found: Verified) -> str:
    return next(one.table for one in found.alternates if one.differences)
