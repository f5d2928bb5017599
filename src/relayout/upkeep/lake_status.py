"""What `relayout status` knows, as values: the lake, its tables, their files, their ledger."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from relayout.read.census import CLASS_NAMES, FileCensus
from relayout.table.batches import BatchKey
from relayout.upkeep.alternate_status import NO_ALTERNATES, AlternatesStatus
from relayout.upkeep.health import Health

STATUS_SCHEMA = 1


class BatchState(StrEnum):
    """What holds for a batch now; a failed one may still show the rows of an earlier load."""

    DONE = "done"
    INVALIDATED = "invalidated"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """One batch; rows, files, bytes, snapshot and time are those of the load that is visible, None without one."""

    key: BatchKey
    state: BatchState
    rows: int | None = None
    files: int | None = None
    size_bytes: int | None = None
    snapshot_id: int | None = None
    loaded_at_ms: int | None = None
    in_ledger: bool = True
    error: str = ""
    failed_at_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "batch": dict(self.key.items),
            "state": self.state.value,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.size_bytes,
            "snapshot_id": self.snapshot_id,
            "loaded_at_ms": self.loaded_at_ms,
            "in_ledger": self.in_ledger,
            "error": self.error,
            "failed_at_ms": self.failed_at_ms,
        }


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """All batches of a table; `unrecorded` counts stamps that the ledger table does not hold yet."""

    batches: tuple[BatchStatus, ...] = ()
    unrecorded: int = 0
    last_run_ms: int | None = None

    def of(self, state: BatchState) -> tuple[BatchStatus, ...]:
        return tuple(batch for batch in self.batches if batch.state is state)

    def to_json(self) -> dict[str, Any]:
        failed = self.of(BatchState.FAILED)
        return {
            "done": len(self.of(BatchState.DONE)),
            "failed": len(failed),
            "invalidated": len(self.of(BatchState.INVALIDATED)),
            "unrecorded": self.unrecorded,
            "last_run_ms": self.last_run_ms,
            "failures": [
                {
                    "batch": dict(batch.key.items),
                    "error": batch.error,
                    "failed_at_ms": batch.failed_at_ms,
                    "next": "relayout retry",
                }
                for batch in failed
            ],
        }


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """The current snapshot."""

    snapshot_id: int
    timestamp_ms: int
    operation: str


@dataclass(frozen=True, slots=True)
class SpecStatus:
    """One partition spec that the table has, in words."""

    spec_id: int
    layout: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Files:
    """The live files; `census` is None for a large table that nobody named, the totals are then the snapshot's.

    `rows` leaves out deleted ones, which is exact only where nothing was deleted in place (`rows_are_exact`).
    """

    data_files: int
    size_bytes: int
    rows: int
    rows_are_exact: bool
    delete_files: int
    small_below_bytes: int
    census: FileCensus | None

    @property
    def average_bytes(self) -> int | None:
        return self.size_bytes // self.data_files if self.data_files else None


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table; everything but name, declaration and `problem` is left out where there is no table to read."""

    name: str
    declared: bool
    managed: bool = False
    exists: bool = False
    problem: str = ""
    next: str = ""
    location: str = ""
    format_version: int | None = None
    snapshot: SnapshotStatus | None = None
    files: Files | None = None
    layout: str = ""
    declared_layout: str = ""
    drifted: bool = False
    specs: tuple[SpecStatus, ...] = ()
    health: Health | None = None
    ledger: LedgerStatus = LedgerStatus()
    alternates: AlternatesStatus = NO_ALTERNATES

    def to_json(self, *, with_batches: bool) -> dict[str, Any]:
        listed = {"batches": [batch.to_json() for batch in self.ledger.batches]} if with_batches else {}
        return {
            "table": self.name,
            "declared": self.declared,
            "managed": self.managed,
            "exists": self.exists,
            "problem": self.problem,
            "next": self.next,
            "location": self.location,
            "format_version": self.format_version,
            "snapshot": None if self.snapshot is None else asdict(self.snapshot),
            **_files_json(self.files),
            "layout": {"declared": self.declared_layout, "actual": self.layout, "drift": self.drifted},
            "specs": [self._spec_json(spec) for spec in self.specs],
            "health": None if self.health is None else self.health.to_json(),
            "ledger": self.ledger.to_json(),
            **self.alternates.to_json(),
            **listed,
        }

    def _spec_json(self, spec: SpecStatus) -> dict[str, Any]:
        told: dict[str, Any] = {"spec_id": spec.spec_id, "layout": spec.layout, "current": spec.is_current}
        census = self.files.census if self.files else None
        if census is None:
            return {**told, "data_files": None, "bytes": None, "histogram": None}
        counted = next((counted for counted in census.specs if counted.spec_id == spec.spec_id), None)
        counts = counted.histogram if counted else (0,) * len(CLASS_NAMES)
        return {
            **told,
            "data_files": counted.data_files if counted else 0,
            "bytes": counted.size_bytes if counted else 0,
            "histogram": dict(zip(CLASS_NAMES, counts, strict=True)),
        }


def _files_json(files: Files | None) -> dict[str, Any]:
    if files is None:
        names = ("rows", "rows_exact", "data_files", "bytes", "average_file_bytes", "small_files", "small_below_bytes")
        return dict.fromkeys((*names, "delete_files"))
    return {
        "rows": files.rows,
        "rows_exact": files.rows_are_exact,
        "data_files": files.data_files,
        "bytes": files.size_bytes,
        "average_file_bytes": files.average_bytes,
        "small_files": files.census.small_files if files.census else None,
        "small_below_bytes": files.small_below_bytes,
        "delete_files": files.delete_files,
    }


@dataclass(frozen=True, slots=True)
class LakeStatus:
    """The whole answer; `detailed` says that tables were named, which lists their batches."""

    at_ms: int
    warehouse: str
    catalog: str
    namespace: str
    catalog_exists: bool
    tables: tuple[TableStatus, ...]
    detailed: bool = False

    @property
    def next(self) -> str:
        """The one command that helps most, empty when all is well."""
        return next((table.next for table in self.tables if table.next), "")

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": STATUS_SCHEMA,
            "kind": "status",
            "at_ms": self.at_ms,
            "warehouse": self.warehouse,
            "catalog": {"name": self.catalog, "exists": self.catalog_exists},
            "namespace": self.namespace,
            "next": self.next,
            "tables": [table.to_json(with_batches=self.detailed) for table in self.tables],
        }
