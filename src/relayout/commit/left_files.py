"""Files that no snapshot uses: of failed batches and of runs that died, which the ledger knows, and of a lost race.

Only files that this project wrote under its own run id, and that no metadata of the table refers to, are ever deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from relayout.kernels.places import place_for
from relayout.ledger.records import BatchRecord, State

if TYPE_CHECKING:
    from pyiceberg.table import Table

GRACE_MS = 24 * 3600 * 1000
"""Tasks of a run that died may still be writing for a while, and clocks differ."""


def expired_left_files(records: Iterable[BatchRecord], now_ms: int) -> tuple[str, ...]:
    """Files of failed batches and of dead runs whose grace period is over."""
    found = dict.fromkeys(
        path
        for record in records
        if record.state in (State.FAILED, State.LEFT) and record.recorded_at_ms < now_ms - GRACE_MS
        for path in record.left_files
    )
    return tuple(found)


def delete_left_files(table: Table, paths: Iterable[str], store: Mapping[str, str]) -> int:
    """Delete those of the files that no snapshot of the table refers to; returns how many went."""
    there = [path for path in paths if place_for(path, store).exists(path)]
    return delete_own_files(unreferenced(table, there), store)


def unreferenced(table: Table, paths: Iterable[str]) -> set[str]:
    """Those of the files that no snapshot of the table refers to, on whatever branch."""
    left = {_spelt_alike(path): path for path in paths}
    seen: set[str] = set()
    for snapshot in table.metadata.snapshots if left else ():
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                    left.pop(_spelt_alike(entry.data_file.file_path), None)
    return set(left.values())


def _spelt_alike(path: str) -> str:
    """Engines write one local path as `/x`, `file:/x` or `file:///x`."""
    return re.sub("^file:/+", "/", path)


def delete_own_files(paths: Iterable[str], store: Mapping[str, str]) -> int:
    """Delete files of this run of which it is certain that no commit has them; missing ones are not counted."""
    gone = 0
    for path in paths:
        gone += place_for(path, store).remove(path)
    return gone
