"""What `relayout status` knows of a table's alternates, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from relayout.table.batches import BatchKey

AMPLIFICATION_BUDGET = 3.0
"""Bytes of a table in all its layouts, by the bytes of the table itself, that nobody should exceed unawares."""


class Freshness(StrEnum):
    """How much of the table's current snapshot an alternate can serve."""

    FRESH = "fresh"
    PARTLY = "partly stale"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Use:
    """How often queries looked at an alternate, could have used it, and used it; None where nobody counted."""

    considered: int
    matched: int
    used: int
    last_used_ms: int | None


@dataclass(frozen=True, slots=True)
class AlternateStatus:
    """One alternate; `batches` are the stale ones, or with `only_these` the fresh ones."""

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
    use: Use | None = None

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
            "use": None if self.use is None else asdict(self.use),
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
