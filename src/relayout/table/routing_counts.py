"""How often an alternate was looked at for a query, could have served it, and served it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RoutingCounts:
    """Counts of one alternate; it matched when it was fresh enough and had the query's columns.

    `last_used_ms` is 0 while it never served.
    """

    base_uuid: str
    layout: str
    considered: int
    matched: int
    used: int
    last_used_ms: int = 0

    @classmethod
    def from_told(cls, told: Mapping[str, Any]) -> RoutingCounts:
        """From what the rule in the JVM counted."""
        return cls(
            told["base"], told["layout"], told["considered"], told["matched"], told["used"], told["last_used_ms"]
        )

    def plus(self, other: RoutingCounts) -> RoutingCounts:
        return RoutingCounts(
            self.base_uuid,
            self.layout,
            self.considered + other.considered,
            self.matched + other.matched,
            self.used + other.used,
            max(self.last_used_ms, other.last_used_ms),
        )
