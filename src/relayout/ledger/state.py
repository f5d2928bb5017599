"""What is done, judged by the current snapshot's ancestry; a rollback re-opens what it undid.

Live snapshots speak for themselves through their stamps. Where history was expired, each stamp's pointer to the one
before it leads on through the ledger, so expiry forgets nothing and an undone commit is never counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from relayout.ledger.records import LAYOUT, PREVIOUS_STAMP, BatchRecord, BatchStamp, State, stamps_in
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot


@dataclass(frozen=True, slots=True)
class DoneBatch:
    """A batch that is visible now; `record` is its ledger line when that was written."""

    stamp: BatchStamp
    snapshot_id: int
    sequence_number: int
    record: BatchRecord | None
    invalidated: bool = False


@dataclass(frozen=True, slots=True)
class LedgerState:
    """All that counts for one layout of one table.

    `unrecorded` are stamps of the live history that the ledger table does not hold yet; `counted` are the ids of all
    stamps that are in the ancestry, `counted_at` their sequence numbers.
    """

    done: Mapping[BatchKey, DoneBatch] = field(default_factory=dict)
    failed: Mapping[BatchKey, BatchRecord] = field(default_factory=dict)
    unrecorded: tuple[tuple[Snapshot, BatchStamp], ...] = ()
    counted: frozenset[int] = frozenset()
    counted_at: frozenset[int] = frozenset()
    newest_stamp: int | None = None


def judge(ancestry: Sequence[Snapshot], records: Iterable[BatchRecord], layout: str) -> LedgerState:
    """Fold history and ledger into what is done now."""
    own = [record for record in records if record.layout == layout]
    commits: dict[int, list[BatchRecord]] = {}
    for record in own:
        if record.snapshot_id is not None and record.state in (State.DONE, State.REMOVED):
            commits.setdefault(record.snapshot_id, []).append(record)
    counted = _counted(ancestry, commits, layout)
    voided = {(record.snapshot_id, record.batch) for record in own if record.state is State.INVALIDATED}
    found: list[DoneBatch] = []
    unrecorded: list[tuple[Snapshot, BatchStamp]] = []
    live = {snapshot.snapshot_id for snapshot in ancestry}
    for snapshot in ancestry:
        lines = _newest_lines(commits.get(snapshot.snapshot_id, ()))
        for stamp in stamps_in(snapshot.summary, layout):
            line = lines.get(stamp.batch)
            if line is None:
                unrecorded.append((snapshot, stamp))
            voids = (snapshot.snapshot_id, stamp.batch) in voided
            now = stamp
            if line is not None and line.schema_hash != stamp.schema_hash:
                # A rewrite in place changed how the rows lie without loading them anew; the ledger knows.
                now = replace(stamp, schema_hash=line.schema_hash)
            found.append(DoneBatch(now, snapshot.snapshot_id, snapshot.sequence_number, line, voids))
    for snapshot_id in counted - live:
        for record in _newest_lines(commits[snapshot_id]).values():
            voids = (snapshot_id, record.batch) in voided
            found.append(DoneBatch(_stamp_of(record), snapshot_id, record.sequence_number, record, voids))
    done: dict[BatchKey, DoneBatch] = {}
    for batch in sorted(found, key=lambda batch: batch.sequence_number):
        done[batch.stamp.batch] = batch
    newest = max(found, key=lambda batch: batch.sequence_number, default=None)
    return LedgerState(
        done={key: batch for key, batch in done.items() if not batch.stamp.removed},
        failed=_failed(own, unrecorded),
        unrecorded=tuple(unrecorded),
        counted=frozenset(counted),
        counted_at=frozenset(batch.sequence_number for batch in found),
        newest_stamp=newest.snapshot_id if newest else None,
    )


def _newest_lines(records: Iterable[BatchRecord]) -> dict[BatchKey, BatchRecord]:
    """The last line written for each batch of one commit."""
    return {record.batch: record for record in sorted(records, key=lambda record: record.recorded_at_ms)}


def _counted(ancestry: Sequence[Snapshot], commits: Mapping[int, list[BatchRecord]], layout: str) -> set[int]:
    """Ids of all stamps in the ancestry, beyond the point where history was expired too."""
    counted = {snapshot.snapshot_id for snapshot in ancestry if stamps_in(snapshot.summary, layout)}
    if not ancestry or ancestry[-1].parent_id is None:
        return counted
    oldest = ancestry[-1]
    following = _pointer_out_of(ancestry, layout)
    if following is None and oldest.parent_id in commits:
        following = oldest.parent_id
    if following is None and not counted:
        # Nothing points back, so what is older than all that is left can only have been expired.
        older = [lines[0] for lines in commits.values() if lines[0].sequence_number < oldest.sequence_number]
        newest = max(older, key=lambda line: line.sequence_number, default=None)
        following = newest.snapshot_id if newest else None
    while following is not None and following in commits and following not in counted:
        counted.add(following)
        following = commits[following][0].previous_stamp
    return counted


def _pointer_out_of(ancestry: Sequence[Snapshot], layout: str) -> int | None:
    """Where the oldest live stamp points to."""
    for snapshot in reversed(ancestry):
        if snapshot.summary.get(LAYOUT) == layout and PREVIOUS_STAMP in snapshot.summary:
            text = snapshot.summary[PREVIOUS_STAMP]
            return int(text) if text else None
    return None


def _stamp_of(record: BatchRecord) -> BatchStamp:
    return BatchStamp(
        record.batch,
        record.fingerprint,
        record.schema_hash,
        record.rows,
        record.files,
        record.size_bytes,
        removed=record.state is State.REMOVED,
    )


def _failed(
    records: Iterable[BatchRecord], unrecorded: Iterable[tuple[Snapshot, BatchStamp]]
) -> dict[BatchKey, BatchRecord]:
    """Batches whose newest attempt failed; an invalidation is none, a stamp without a line is one that landed."""
    newest: dict[BatchKey, BatchRecord] = {}
    for record in sorted(records, key=lambda record: record.recorded_at_ms):
        if record.state not in (State.INVALIDATED, State.LEFT):
            newest[record.batch] = record
    for snapshot, stamp in unrecorded:
        if stamp.batch in newest and newest[stamp.batch].recorded_at_ms < snapshot.timestamp_ms:
            del newest[stamp.batch]
    return {key: record for key, record in newest.items() if record.state is State.FAILED}
