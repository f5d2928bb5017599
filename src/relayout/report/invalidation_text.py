"""Invalidated batches in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from relayout.report.printable import printable
from relayout.table.batches import BatchKey
from relayout.table.quantities import count_text

MOST_SHOWN = 20


class Marked(Protocol):
    """A batch that is, or would be, marked."""

    @property
    def key(self) -> BatchKey: ...


def invalidation_text(table: str, batches: Sequence[Marked], dry_run: bool) -> str:
    """Which batches the next apply loads again, and how to have that done."""
    name = printable(table)
    if not batches:
        return f"{name}: every batch that was named is marked already"
    counted = count_text(len(batches), "batch", "batches")
    lines = [f"{name}: {counted} {'would be' if dry_run else 'marked to be'} loaded again"]
    lines += [f"  {printable(str(batch.key))}" for batch in batches[:MOST_SHOWN]]
    if len(batches) > MOST_SHOWN:
        lines.append(f"  and {len(batches) - MOST_SHOWN:,} more")
    lines.append(f"next: relayout {'invalidate without --dry-run' if dry_run else f'apply {name}'}")
    return "\n".join(lines)
