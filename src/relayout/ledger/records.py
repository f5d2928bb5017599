"""Ledger records and snapshot stamps: the two places that say which batch holds which sources.

A stamp stands in the summary of the snapshot that made a batch visible, so it can neither be lost nor lie. The ledger
table repeats it with the whole file list and outlives snapshot expiry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from relayout.table.batches import BatchKey
from relayout.table.sources import SourceFile

PLAN_ID = "relayout.plan-id"
RUN_ID = "relayout.run-id"
LAYOUT = "relayout.layout"
BATCHES = "relayout.batches"
PREVIOUS_STAMP = "relayout.previous-stamp"

BASE_LAYOUT = "base"


class State(StrEnum):
    """What a record says about its batch; `left` is about no batch but about the files of a run that died."""

    DONE = "done"
    REMOVED = "removed"
    FAILED = "failed"
    INVALIDATED = "invalidated"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class SourceStamp:
    """A source file as it was read; `content_hash` tells a changed file from one that was only touched.

    `batches` is how many batches the file held rows of, so that nobody takes some of them for all.
    """

    path: str
    size_bytes: int
    modified_ns: int
    changed_ns: int
    etag: str
    content_hash: str
    batches: int = 1


@dataclass(frozen=True, slots=True)
class BatchStamp:
    """What a snapshot's summary says of one batch."""

    batch: BatchKey
    fingerprint: str
    schema_hash: str
    rows: int
    files: int
    size_bytes: int
    removed: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "batch": dict(self.batch.items),
            "fingerprint": self.fingerprint,
            "schema-hash": self.schema_hash,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.size_bytes,
            **({"removed": True} if self.removed else {}),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> BatchStamp:
        return cls(
            BatchKey(tuple(told["batch"].items())),
            told["fingerprint"],
            told["schema-hash"],
            told["rows"],
            told["files"],
            told["bytes"],
            bool(told.get("removed")),
        )


def stamps_in(summary: Mapping[str, str], layout: str) -> tuple[BatchStamp, ...]:
    """The batches of `layout` that the snapshot with this summary made visible."""
    if summary.get(LAYOUT) != layout or BATCHES not in summary:
        return ()
    return tuple(BatchStamp.from_json(told) for told in json.loads(summary[BATCHES]))


def stamp_summary(
    plan_id: str, run_id: str, layout: str, stamps: Iterable[BatchStamp], previous_stamp: int | None
) -> dict[str, str]:
    """Summary entries that make a snapshot account for these batches."""
    return {
        PLAN_ID: plan_id,
        RUN_ID: run_id,
        LAYOUT: layout,
        BATCHES: json.dumps([stamp.to_json() for stamp in stamps], ensure_ascii=False, separators=(",", ":")),
        PREVIOUS_STAMP: "" if previous_stamp is None else str(previous_stamp),
    }


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One line of the ledger table.

    `snapshot_id` is the commit for done and removed batches, the stamp that no longer counts for invalidated ones and
    None for failed ones. `sources` is None where it was not read or is not known.
    """

    table_name: str
    layout: str
    batch: BatchKey
    state: State
    fingerprint: str
    schema_hash: str
    snapshot_id: int | None
    previous_stamp: int | None
    sequence_number: int
    plan_id: str
    run_id: str
    rows: int
    files: int
    size_bytes: int
    seconds: float
    error: str
    recorded_at_ms: int
    incremental_keys: tuple[BatchKey, ...] = ()
    sources: tuple[SourceStamp, ...] | None = None
    left_files: tuple[str, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """The record as a row of the ledger table."""
        row = {name: getattr(self, name) for name in PLAIN_COLUMNS}
        row["batch"] = self.batch.to_json()
        row["state"] = self.state.value
        row["incremental_keys"] = [key.to_json() for key in self.incremental_keys]
        row["sources"] = None if self.sources is None else [asdict(source) for source in self.sources]
        row["left_files"] = list(self.left_files)
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> BatchRecord:
        told = {name: row[name] for name in PLAIN_COLUMNS}
        told["batch"] = BatchKey.from_json(row["batch"])
        told["state"] = State(row["state"])
        sources = row.get("sources")
        return cls(
            **told,
            incremental_keys=tuple(BatchKey.from_json(key) for key in row.get("incremental_keys") or ()),
            sources=None if sources is None else tuple(SourceStamp(**source) for source in sources),
            left_files=tuple(row.get("left_files") or ()),
        )


PLAIN_COLUMNS = (
    "table_name",
    "layout",
    "batch",
    "state",
    "fingerprint",
    "schema_hash",
    "snapshot_id",
    "previous_stamp",
    "sequence_number",
    "plan_id",
    "run_id",
    "rows",
    "files",
    "size_bytes",
    "seconds",
    "error",
    "recorded_at_ms",
)

LEDGER_SCHEMA = (
    "table_name string, layout string, batch string, state string, fingerprint string, schema_hash string, "
    "snapshot_id bigint, previous_stamp bigint, sequence_number bigint, plan_id string, run_id string, rows bigint, "
    "files bigint, size_bytes bigint, seconds double, error string, recorded_at_ms bigint, "
    "incremental_keys array<string>, "
    "sources array<struct<path: string, size_bytes: bigint, modified_ns: bigint, changed_ns: bigint, etag: string, "
    "content_hash: string, batches: int>>, left_files array<string>"
)


def fingerprint_of(files: Iterable[SourceFile]) -> str:
    """A digest of a batch's sources as the listing shows them; the order of listing does not matter."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        line = (file.path, file.size_bytes, file.modified_ns, file.changed_ns, file.etag)
        digest.update(json.dumps(line).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
