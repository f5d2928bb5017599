"""What a rewrite of one table did, group by group, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class GroupOutcome(StrEnum):
    """How a group ended; a conflict is one that others changed again and again while it was rewritten."""

    DONE = "done"
    FAILED = "failed"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class GroupReceipt:
    """One group: files and bytes before and after, rows kept, rows that deletes had taken, and who rewrote it."""

    spec_id: int
    partition: Mapping[str, Any] | None
    outcome: GroupOutcome
    engine: str
    files_before: int
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    deleted_rows: int = 0
    snapshot_id: int | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "outcome": self.outcome.value}


@dataclass(frozen=True, slots=True)
class RewriteReceipt:
    """One run over one table; `dead_deletes` counts delete files that nothing needed any more."""

    table: str
    plan_id: str
    run_id: str
    groups: tuple[GroupReceipt, ...]
    snapshot_ids: tuple[int, ...]
    dead_deletes: int
    seconds: float

    @property
    def complete(self) -> bool:
        return all(group.outcome is GroupOutcome.DONE for group in self.groups)

    def count(self, outcome: GroupOutcome) -> int:
        return sum(1 for group in self.groups if group.outcome is outcome)

    def sum(self, name: str) -> int:
        """The total of one number over the groups that are done."""
        return sum(int(getattr(group, name)) for group in self.groups if group.outcome is GroupOutcome.DONE)

    def to_json(self) -> dict[str, Any]:
        totals = ("files_before", "files_after", "bytes_before", "bytes_after", "rows", "deleted_rows")
        return {
            "schema": 1,
            "kind": "rewrite-receipt",
            "table": self.table,
            "plan_id": self.plan_id,
            "run_id": self.run_id,
            "complete": self.complete,
            **{outcome.value: self.count(outcome) for outcome in GroupOutcome},
            **{name: self.sum(name) for name in totals},
            "dead_deletes": self.dead_deletes,
            "snapshot_ids": list(self.snapshot_ids),
            "seconds": round(self.seconds, 3),
            "groups": [group.to_json() for group in self.groups],
        }
