"""What a run did, as values: per batch, per table, in all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from relayout.table.batches import BatchKey


class Outcome(StrEnum):
    """How a batch ended; skipped ones were loaded by somebody else or need a flag that was not given."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class BatchReceipt:
    """One batch; `note` is the error of a failed one and the reason of a skipped one."""

    key: BatchKey
    action: str
    outcome: Outcome
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    source_files: int = 0
    source_bytes: int = 0
    seconds: float = 0.0
    snapshot_id: int | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "key": dict(self.key.items)}


@dataclass(frozen=True, slots=True)
class Migration:
    """A table before and after its layout changed; rows and keys must be equal unless sources changed too."""

    layout_before: str
    layout_after: str
    files_before: int
    files_after: int
    rows_before: int
    rows_after: int
    keys_before: int
    keys_after: int

    @property
    def verified(self) -> bool:
        return (self.rows_before, self.keys_before) == (self.rows_after, self.keys_after)


@dataclass(frozen=True, slots=True)
class AlternateReceipt:
    """What a run did to one alternate; a failed one is made good by the next run, and the base does not wait for it."""

    name: str
    table: str
    layout: str
    action: str
    outcome: Outcome
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TableReceipt:
    """All batches of one table; `error` is set when the table as a whole could not be worked on.

    `bad_files` are source files that could not be used, with the reason.
    """

    table: str
    change: str
    batches: tuple[BatchReceipt, ...]
    seconds: float
    migration: Migration | None = None
    error: str = ""
    bad_files: tuple[tuple[str, str], ...] = ()
    alternates: tuple[AlternateReceipt, ...] = ()

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """Snapshots that this run made or relied on, each once, in the order of the batches."""
        return tuple(dict.fromkeys(batch.snapshot_id for batch in self.batches if batch.snapshot_id is not None))

    def of(self, outcome: Outcome) -> Iterator[BatchReceipt]:
        return (batch for batch in self.batches if batch.outcome is outcome)

    def to_json(self) -> dict[str, Any]:
        migration = None if self.migration is None else {**asdict(self.migration), "verified": self.migration.verified}
        return {
            "table": self.table,
            "change": self.change,
            "error": self.error,
            "seconds": round(self.seconds, 3),
            "rows": sum(batch.rows for batch in self.batches),
            "files": sum(batch.files for batch in self.batches),
            "bytes": sum(batch.size_bytes for batch in self.batches),
            "snapshot_ids": list(self.snapshot_ids),
            "bad_files": [{"path": path, "reason": reason} for path, reason in self.bad_files],
            "migration": migration,
            "batches": [batch.to_json() for batch in self.batches],
            "alternates": [alternate.to_json() for alternate in self.alternates],
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """One run over all its tables."""

    plan_id: str
    run_id: str
    tables: tuple[TableReceipt, ...]
    seconds: float
    dropped: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        return sum(1 for table in self.tables for _ in table.of(outcome))

    @property
    def complete(self) -> bool:
        """Whether nothing failed, no source file was bad and no table or alternate was left aside."""
        behind = any(one.outcome is Outcome.FAILED for table in self.tables for one in table.alternates)
        bad = any(table.error or table.bad_files for table in self.tables)
        return not (self.count(Outcome.FAILED) or behind or bad)

    def to_json(self) -> dict[str, Any]:
        tables = [table.to_json() for table in self.tables]
        return {
            "schema": 1,
            "kind": "receipt",
            "plan_id": self.plan_id,
            "run_id": self.run_id,
            "complete": self.complete,
            "done": self.count(Outcome.DONE),
            "failed": self.count(Outcome.FAILED),
            "skipped": self.count(Outcome.SKIPPED),
            **{name: sum(table[name] for table in tables) for name in ("rows", "files", "bytes")},
            "seconds": round(self.seconds, 3),
            "snapshot_ids": [number for table in tables for number in table["snapshot_ids"]],
            "dropped": list(self.dropped),
            "tables": tables,
        }
