"""What `relayout status` knows of a table's alternates, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from relayout.table.batches import BatchKey
from relayout.table.routing_counts import RoutingCounts

AMPLIFICATION_BUDGET = 3.0
"""Bytes of a table in all its layouts, by the bytes of the table itself, that nobody should exceed unawares."""


class Freshness(StrEnum):
    """How much of the table's current snapshot an alternate can serve."""

    FRESH = "fresh"
    PARTLY = "partly stale"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class AlternateStatus:
    """One alternate; `batches` are the stale ones, or with `only_these` the fresh ones.

    `use` is None where no query ever looked at it.
    """

    name: str
    table: str
    layout: str
    declared: bool
    freshness: Freshness
    rows: int
    files: int
    size_bytes: int
    amplification: float | None
    batches: tuple[BatchKey, ...] = ()
    only_these: bool = False
    use: RoutingCounts | None = None

    def to_json(self) -> dict[str, Any]:
        listed = [dict(key.items) for key in self.batches]
        return {
            "name": self.name,
            "table": self.table,
            "layout": self.layout,
            "declared": self.declared,
            "freshness": self.freshness.value,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.size_bytes,
            "amplification": self.amplification,
            "stale_batches": None if self.only_these else listed,
            "fresh_batches": listed if self.only_these else None,
            "use": None
            if self.use is None
            else {
                "considered": self.use.considered,
                "matched": self.use.matched,
                "used": self.use.used,
                "last_used_ms": self.use.last_used_ms or None,
            },
        }


@dataclass(frozen=True, slots=True)
class AlternatesStatus:
    """All alternates of one table, and what they take together with it."""

    alternates: tuple[AlternateStatus, ...] = ()
    amplification: float | None = None

    @property
    def over_budget(self) -> bool:
        return self.amplification is not None and self.amplification > AMPLIFICATION_BUDGET

    def to_json(self) -> dict[str, Any]:
        return {
            "alternates": [one.to_json() for one in self.alternates],
            "amplification": self.amplification,
            "amplification_budget": AMPLIFICATION_BUDGET,
        }


NO_ALTERNATES = AlternatesStatus()
