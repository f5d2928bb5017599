"""Batches whose rows somebody other than an ingestion changed: DML, a sink, another engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from relayout.ledger.records import BATCHES
from relayout.read.live_files import may_hold
from relayout.read.manifests import DATA, Entry, entries_in, live_entries
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table


def edited_batches(
    table: Table, ancestry: Sequence[Snapshot], since: Mapping[BatchKey, int | None], counted: frozenset[int]
) -> dict[BatchKey, int]:
    """Batches that foreign snapshots touched after their stamp, with the id of one such snapshot.

    `since` holds each batch's stamp, None for one that was never loaded. Where history before a stamp was expired, rows
    that no known snapshot accounts for count as edits too.
    """
    position = {snapshot.snapshot_id: number for number, snapshot in enumerate(ancestry)}
    ever = len(ancestry)
    reach = {key: ever if stamp is None else position.get(stamp, ever) for key, stamp in since.items()}
    edited = touched_by_others(table, ancestry, reach)
    forgotten = {
        key
        for key, stamp in since.items()
        if key not in edited and stamp not in position and ancestry and ancestry[-1].parent_id is not None
    }
    if forgotten:
        known = counted | {snapshot.snapshot_id for snapshot in ancestry}
        for entry in _live_entries(table, ancestry[0].snapshot_id):
            if entry.snapshot_id not in known:
                open_keys = forgotten - edited.keys()
                edited |= {key: entry.snapshot_id for key in open_keys if may_hold(table, entry.file, key)}
    return edited


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
    for entry in _changed_files(table, snapshot_id):
        if entry.only_data_file:
            named.setdefault(entry.only_data_file, []).append(entry.file)
        else:
            yield entry.file
    if named:
        for entry in _live_entries(table, snapshot_id):
            if int(entry.file.content) == DATA and entry.file.file_path in named:
                del named[entry.file.file_path]
                yield entry.file
    for unknown in named.values():
        yield from unknown


def _changed_files(table: Table, snapshot_id: int) -> Iterable[Entry]:
    """Files that one snapshot added or deleted, delete files included."""
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        if manifest.added_snapshot_id == snapshot_id:
            for entry in entries_in(manifest, table.io):
                if entry.snapshot_id == snapshot_id and not entry.existing:
                    yield entry


def _live_entries(table: Table, at: int) -> Iterable[Entry]:
    snapshot = table.metadata.snapshot_by_id(at)
    return live_entries(snapshot.manifests(table.io), table.io) if snapshot else ()
