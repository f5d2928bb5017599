"""Files that no snapshot uses: those of failed batches, which the ledger knows, and those of a lost race.

Only files that this project wrote under its own run id, and that no metadata of the table refers to, are ever deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from relayout.kernels.places import place_for
from relayout.ledger.records import BatchRecord, State

if TYPE_CHECKING:
    from pyiceberg.table import Table

GRACE_MS = 24 * 3600 * 1000
"""Tasks of a run that died may still be writing for a while, and clocks differ."""


def expired_left_files(records: Iterable[BatchRecord], now_ms: int) -> tuple[str, ...]:
    """Files of failed batches whose grace period is over."""
    found = dict.fromkeys(
        path
        for record in records
        if record.state is State.FAILED and record.recorded_at_ms < now_ms - GRACE_MS
        for path in record.left_files
    )
    return tuple(found)


def delete_left_files(table: Table, paths: Iterable[str], store: Mapping[str, str]) -> int:
    """Delete those of the files that no snapshot of the table refers to; returns how many went."""
    wanted = set(paths)
    if not wanted:
        return 0
    for snapshot in table.metadata.snapshots:
        for manifest in snapshot.manifests(table.io):
            wanted -= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io, False)}
    return delete_own_files(wanted, store)


def delete_own_files(paths: Iterable[str], store: Mapping[str, str]) -> int:
    """Delete files of this run of which it is certain that no commit has them; missing ones are not counted."""
    gone = 0
    for path in paths:
        gone += place_for(path, store).remove(path)
    return gone
