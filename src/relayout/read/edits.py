"""Batches whose rows somebody other than an ingestion changed: DML, a sink, another engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from relayout.ledger.records import BATCHES
from relayout.ledger.state import LedgerState
from relayout.read.live_files import may_hold
from relayout.read.live_rows import rows_of_batches
from relayout.read.manifests import DATA, Entry, entries_in, live_entries
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table


def edited_batches(
    table: Table, ancestry: Sequence[Snapshot], keys: Iterable[BatchKey], state: LedgerState
) -> dict[BatchKey, int | None]:
    """Batches that foreign snapshots touched after their stamp, with the id of one such snapshot.

    Where history before a stamp was expired, rows that no known snapshot accounts for count as edits too, and so do
    rows that are missing; None stands for a snapshot of which nothing is left.
    """
    position = {snapshot.snapshot_id: number for number, snapshot in enumerate(ancestry)}
    ever = len(ancestry)
    stamps = {key: done.snapshot_id if (done := state.done.get(key)) else None for key in keys}
    reach = {key: ever if stamp is None else position.get(stamp, ever) for key, stamp in stamps.items()}
    edited: dict[BatchKey, int | None] = {**touched_by_others(table, ancestry, reach)}
    if ancestry and ancestry[-1].parent_id is not None:
        forgotten = {
            key: done.sequence_number if (done := state.done.get(key)) else 0
            for key, stamp in stamps.items()
            if key not in edited and stamp not in position
        }
        edited |= _not_accounted_for(table, ancestry, forgotten, state)
        loaded = {key: state.done[key].stamp.rows for key in forgotten if key in state.done and key not in edited}
        live = rows_of_batches(table, list(loaded)) if loaded else {}
        edited |= {key: None for key, rows in loaded.items() if live[key] != rows}
    return edited


def _not_accounted_for(
    table: Table, ancestry: Sequence[Snapshot], loaded_at: Mapping[BatchKey, int], state: LedgerState
) -> dict[BatchKey, int]:
    """Batches in files of snapshots that nobody knows any more; `loaded_at` are the batches' sequence numbers."""
    known = state.counted | {snapshot.snapshot_id for snapshot in ancestry}
    passed = state.counted_at | {snapshot.sequence_number for snapshot in ancestry}
    found: dict[BatchKey, int] = {}
    for entry in live_at(table, ancestry[0].snapshot_id) if loaded_at else ():
        if entry.snapshot_id not in known:
            for key in loaded_at.keys() - found.keys():
                if not _only_moved(entry, loaded_at[key], passed) and may_hold(table, entry.file, key):
                    found[key] = entry.snapshot_id
    return found


def _only_moved(entry: Entry, loaded_at: int, passed: Collection[int]) -> bool:
    """Whether a compaction wrote the file from rows between which and the load only known snapshots were.

    A compaction keeps the sequence number of what it read; files of any other snapshot have that of their commit.
    """
    compacted = entry.sequence_number < entry.file_sequence_number
    return compacted and all(number in passed for number in range(loaded_at + 1, entry.sequence_number + 1))


def touched_by_others(
    table: Table, newest_first: Sequence[Snapshot], reach: Mapping[BatchKey, int]
) -> dict[BatchKey, int]:
    """Batches whose rows a foreign snapshot may have changed, with its id.

    `reach` says how many of the snapshots concern each batch. One that only replaces files changes no row.
    """
    touched: dict[BatchKey, int] = {}
    for number, snapshot in enumerate(newest_first):
        if snapshot.operation == "replace" or BATCHES in snapshot.summary:
            continue
        open_keys = [key for key, length in reach.items() if key not in touched and number < length]
        for file in _changed_data(table, snapshot.snapshot_id) if open_keys else ():
            touched |= {key: snapshot.snapshot_id for key in open_keys if may_hold(table, file, key)}
    return touched


def _changed_data(table: Table, snapshot_id: int) -> Iterable[DataFile]:
    """What one snapshot changed; a delete file that names its one data file is told by that."""
    named: dict[str, list[DataFile]] = {}
    for entry in changed_files(table, snapshot_id):
        if entry.only_data_file:
            named.setdefault(entry.only_data_file, []).append(entry.file)
        else:
            yield entry.file
    if named:
        for entry in live_at(table, snapshot_id):
            if int(entry.file.content) == DATA and entry.file.file_path in named:
                del named[entry.file.file_path]
                yield entry.file
    for unknown in named.values():
        yield from unknown


def changed_files(table: Table, snapshot_id: int) -> Iterable[Entry]:
    """Files that one snapshot added or deleted, delete files included."""
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        if manifest.added_snapshot_id == snapshot_id:
            for entry in entries_in(manifest, table.io):
                if entry.snapshot_id == snapshot_id and not entry.existing:
                    yield entry


def live_at(table: Table, at: int) -> Iterable[Entry]:
    snapshot = table.metadata.snapshot_by_id(at)
    return live_entries(snapshot.manifests(table.io), table.io) if snapshot else ()
