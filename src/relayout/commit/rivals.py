"""What the newer history of a table says of batches that are about to be committed.

Our own commit may have landed after all, another run may have done the same work, or somebody changed the batches, so
that they must be planned again. Nothing of theirs is overwritten unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.errors import CommitConflict
from relayout.ledger.records import BASE_LAYOUT, PREVIOUS_STAMP, RUN_ID, BatchStamp, stamps_in
from relayout.read.edits import touched_by_others
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class Committed:
    """How a group of batches ended: in our snapshot, or in somebody else's from the same sources."""

    snapshot: Snapshot
    previous_stamp: int | None
    elsewhere: tuple[BatchKey, ...] = ()


class MovedMeanwhile(CommitConflict):
    """Somebody else changed these batches; they must be planned again."""

    def __init__(self, keys: Iterable[BatchKey], why: str) -> None:
        self.keys = tuple(keys)
        super().__init__(f"{why}: {', '.join(str(key) for key in self.keys)}", next="run `relayout apply` again")


def snapshots_since(ancestry: Sequence[Snapshot], planned_on: int | None) -> tuple[Snapshot, ...] | None:
    """What was committed on top of the snapshot that the plan was made on; None if that is not in the history."""
    for number, snapshot in enumerate(ancestry):
        if snapshot.snapshot_id == planned_on:
            return tuple(ancestry[:number])
    return tuple(ancestry) if planned_on is None else None


def settled(
    table: Table, newer: Sequence[Snapshot] | None, wanted: Mapping[BatchKey, str], run_id: str
) -> Committed | None:
    """The commit that makes ours needless, None when there is none; `wanted` holds the fingerprint of each batch.

    Raises MovedMeanwhile for batches that others loaded from other sources, or whose rows somebody edited.
    """
    if newer is None:
        raise MovedMeanwhile(wanted, "the table was rolled back, or its history expired, since this was planned")
    found: dict[BatchKey, tuple[Snapshot, BatchStamp]] = {}
    for snapshot in newer:
        for stamp in stamps_in(snapshot.summary, BASE_LAYOUT):
            if stamp.batch in wanted:
                found.setdefault(stamp.batch, (snapshot, stamp))
    own = next((snapshot for snapshot, _ in found.values() if snapshot.summary.get(RUN_ID) == run_id), None)
    if own is not None and len(found) == len(wanted):
        return Committed(own, previous_of(own))
    edited = touched_by_others(table, newer, dict.fromkeys(wanted, len(newer)))
    if edited:
        raise MovedMeanwhile(edited, "rows were changed by somebody else meanwhile")
    if not found:
        return None
    different = tuple(key for key, (_, stamp) in found.items() if stamp.fingerprint != wanted[key])
    if different or len(found) < len(wanted):
        raise MovedMeanwhile(different or found, "loaded by another run meanwhile")
    newest = next(iter(found.values()))[0]
    return Committed(newest, previous_of(newest), elsewhere=tuple(found))


def own_commit(ancestry: Iterable[Snapshot], run_id: str, wanted: Iterable[BatchKey]) -> Committed | None:
    """The snapshot with our run id and these batches."""
    keys = set(wanted)
    for snapshot in ancestry:
        if snapshot.summary.get(RUN_ID) == run_id:
            stamps = stamps_in(snapshot.summary, BASE_LAYOUT)
            if keys <= {stamp.batch for stamp in stamps}:
                return Committed(snapshot, previous_of(snapshot))
    return None


def previous_of(snapshot: Snapshot) -> int | None:
    """The stamp before the one in this snapshot."""
    text = snapshot.summary.get(PREVIOUS_STAMP, "")
    return int(text) if text else None
