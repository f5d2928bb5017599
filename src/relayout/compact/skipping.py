"""How much of a table queries need not read, file by file: the measure by which a layout is good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayout.compact.filters import Match, MultiSpecFilter
from relayout.table.live_entries import LiveEntry
from relayout.table.partition_keys import PartitionKey


@dataclass(frozen=True, slots=True)
class Skipping:
    """What a reader with this condition may pass over, by partitions and statistics."""

    where: str
    files: int
    size_bytes: int
    skipped_files: int
    skipped_bytes: int

    @property
    def share(self) -> float:
        """The share of bytes that is not read; 0 for an empty table."""
        return self.skipped_bytes / self.size_bytes if self.size_bytes else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "where": self.where,
            "files": self.files,
            "bytes": self.size_bytes,
            "skipped_files": self.skipped_files,
            "skipped_bytes": self.skipped_bytes,
            "share": round(self.share, 4),
        }


@dataclass(slots=True)
class SkippingCount:
    """A running count over live data files for several conditions at once."""

    filters: Mapping[str, MultiSpecFilter]
    files: int = 0
    size_bytes: int = 0
    skipped: dict[str, list[int]] = field(default_factory=dict)

    def add(self, entry: LiveEntry, key: PartitionKey) -> None:
        self.files += 1
        self.size_bytes += entry.size_bytes
        for where, condition in self.filters.items():
            if condition.judged_file(key, entry.counts) is Match.CANNOT:
                counts = self.skipped.setdefault(where, [0, 0])
                counts[0] += 1
                counts[1] += entry.size_bytes

    def finished(self, order: Sequence[str]) -> tuple[Skipping, ...]:
        return tuple(Skipping(where, self.files, self.size_bytes, *self.skipped.get(where, [0, 0])) for where in order)
