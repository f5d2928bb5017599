"""Ledger lines for what a run did to its batches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from relayout.ingest.plan import PlannedBatch
from relayout.ledger.records import (
    PLAN_ID,
    PREVIOUS_STAMP,
    RUN_ID,
    BatchRecord,
    BatchStamp,
    SourceStamp,
    State,
    fingerprint_of,
)
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot
from relayout.table.sources import SourceFile


def batch_record(
    table: str, layout: str, batch: PlannedBatch, state: State, plan_id: str, run_id: str, seconds: float
) -> BatchRecord:
    """A line that says nothing yet of files and snapshots."""
    return replace(
        _empty_line(table, layout, batch.key, state, run_id),
        fingerprint=batch.fingerprint,
        schema_hash=batch.schema_hash,
        plan_id=plan_id,
        seconds=round(seconds, 3),
    )


def files_left(table: str, layout: str, run_id: str, files: Iterable[str]) -> BatchRecord:
    """A line about no batch: files of a run that ended before it could say what became of them."""
    return replace(_empty_line(table, layout, BatchKey(), State.LEFT, run_id), left_files=tuple(sorted(files)))


def _empty_line(table: str, layout: str, key: BatchKey, state: State, run_id: str) -> BatchRecord:
    return BatchRecord(
        table_name=table,
        layout=layout,
        batch=key,
        state=state,
        fingerprint="",
        schema_hash="",
        snapshot_id=None,
        previous_stamp=None,
        sequence_number=0,
        plan_id="",
        run_id=run_id,
        rows=0,
        files=0,
        size_bytes=0,
        seconds=0.0,
        error="",
        recorded_at_ms=now_ms(),
    )


def landed(record: BatchRecord, stamp: BatchStamp, snapshot: Snapshot, previous_stamp: int | None) -> BatchRecord:
    """The same batch, visible in a snapshot."""
    return replace(
        record,
        rows=stamp.rows,
        files=stamp.files,
        size_bytes=stamp.size_bytes,
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        previous_stamp=previous_stamp,
    )


def source_stamps(
    files: Iterable[SourceFile], hashes: Mapping[str, str], shared: Mapping[str, int]
) -> tuple[SourceStamp, ...]:
    """The files as they were read; a file whose hash is not known counts as changed once it is touched."""
    return tuple(
        SourceStamp(
            file.path,
            file.size_bytes,
            file.modified_ns,
            file.changed_ns,
            file.etag,
            hashes.get(file.path, ""),
            shared.get(file.path, 1),
        )
        for file in files
    )


def repaired(
    table: str,
    layout: str,
    unrecorded: Sequence[tuple[Snapshot, BatchStamp]],
    present: Mapping[BatchKey, Sequence[SourceFile]],
    shared: Mapping[str, int],
) -> list[BatchRecord]:
    """Lines for stamps whose run died before it wrote the ledger; sources that still look the same are known again."""
    found = []
    for snapshot, stamp in unrecorded:
        previous = snapshot.summary.get(PREVIOUS_STAMP, "")
        files = present.get(stamp.batch, ())
        same = not stamp.removed and fingerprint_of(files) == stamp.fingerprint
        found.append(
            replace(
                _empty_line(table, layout, stamp.batch, State.DONE, snapshot.summary.get(RUN_ID, "")),
                state=State.REMOVED if stamp.removed else State.DONE,
                fingerprint=stamp.fingerprint,
                schema_hash=stamp.schema_hash,
                snapshot_id=snapshot.snapshot_id,
                previous_stamp=int(previous) if previous else None,
                sequence_number=snapshot.sequence_number,
                plan_id=snapshot.summary.get(PLAN_ID, ""),
                rows=stamp.rows,
                files=stamp.files,
                size_bytes=stamp.size_bytes,
                sources=source_stamps(files, {}, shared) if same else None,
            )
        )
    return found


def now_ms() -> int:
    return time.time_ns() // 1_000_000
