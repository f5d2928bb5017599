"""What `relayout verify` found in a table, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Check(StrEnum):
    """What is compared with what."""

    MANIFEST_SPEC = "manifest-spec"
    DATA_FILE = "data-file"
    PARTITION = "partition"
    BOUNDS = "bounds"
    NULL_COUNTS = "null-counts"
    DELETE_SCOPE = "delete-scope"
    DELETE_FILE = "delete-file"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as the table's metadata says; readers may return wrong rows because of it."""

    check: Check
    file: str
    what: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "check": self.check.value}


@dataclass(frozen=True, slots=True)
class Verification:
    """How much of the current snapshot was looked at, and every fault in it."""

    table: str
    snapshot_id: int | None
    manifests: int
    data_files: int
    delete_files: int
    rows: int
    faults: tuple[Fault, ...]

    @property
    def sound(self) -> bool:
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kind": "verification",
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "sound": self.sound,
            "manifests": self.manifests,
            "data_files": self.data_files,
            "delete_files": self.delete_files,
            "rows": self.rows,
            "faults": [fault.to_json() for fault in self.faults],
        }
