"""Batches whose rows somebody other than an ingestion changed: DML, a sink, another engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from relayout.ledger.records import BATCHES
from relayout.read.live_files import may_hold
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table


_DELETED_FILE_PATH = 2147483546
"""Field id of the path in a position delete file (https://iceberg.apache.org/spec/#position-delete-files)."""


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
        for snapshot_id, file in _live_entries(table, ancestry[0].snapshot_id):
            if snapshot_id not in known:
                edited |= {key: snapshot_id for key in forgotten if key not in edited and may_hold(table, file, key)}
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
    for file in _changed_files(table, snapshot_id):
        if path := _only_data_file(file):
            named.setdefault(path, []).append(file)
        else:
            yield file
    if named:
        for _, file in _live_entries(table, snapshot_id):
            if file.content.value == 0 and file.file_path in named:
                del named[file.file_path]
                yield file
    for unknown in named.values():
        yield from unknown


def _only_data_file(file: DataFile) -> str:
    """The data file that all deletes of a position delete file or a deletion vector are for, or nothing."""
    if file.content.value != 1:
        return ""
    lower, upper = (bounds and bounds.get(_DELETED_FILE_PATH) for bounds in (file.lower_bounds, file.upper_bounds))
    if lower and lower == upper:
        return lower.decode("utf-8", "surrogatepass")
    return getattr(file, "referenced_data_file", None) or ""


def _changed_files(table: Table, snapshot_id: int) -> Iterable[DataFile]:
    """Files that one snapshot added or deleted, delete files included."""
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        if manifest.added_snapshot_id == snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                if entry.snapshot_id == snapshot_id and entry.status.value in (1, 2):
                    yield entry.data_file


def _live_entries(table: Table, at: int) -> Iterable[tuple[int, DataFile]]:
    snapshot = table.metadata.snapshot_by_id(at)
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.snapshot_id or 0, entry.data_file
