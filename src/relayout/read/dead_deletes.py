"""Delete files that no live data file needs any more.

A delete by position names files that were there when it was committed, so it is dead when every file of its partition
came later. A delete by key reaches strictly older rows of its partition, or of every partition where its own spec has
none, so it is dead when no such rows are left. One that names its only data file is dead when that file is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from relayout.read.live_files import delete_json
from relayout.read.manifests import DATA, POSITION_DELETES, Entry, live_entries

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table


def dead_deletes(table: Table) -> list[Mapping[str, Any]]:
    """Dead delete files of the current snapshot, in the JSON form of ContentFileParser."""
    snapshot = table.current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot else []
    deletes = list(live_entries([manifest for manifest in manifests if manifest.content != DATA], table.io))
    if not deletes:
        return []
    live = _Live({entry.only_data_file for entry in deletes})
    live.add(live_entries([manifest for manifest in manifests if manifest.content == DATA], table.io))
    unpartitioned = {
        spec_id
        for spec_id, spec in table.specs().items()
        if all(str(field.transform) == "void" for field in spec.fields)
    }
    return [delete_json(table, entry) for entry in deletes if not live.needs(entry, unpartitioned)]


class _Live:
    """The oldest live files of each partition: when their rows are from, and when the files themselves came."""

    def __init__(self, named: set[str]) -> None:
        self._named = named
        self._alive: set[str] = set()
        self._rows: dict[Hashable, int] = {}
        self._files: dict[Hashable, int] = {}
        self._oldest_rows: int | None = None

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            place = _place(entry.file)
            rows, came = entry.sequence_number, entry.file_sequence_number
            self._rows[place] = min(rows, self._rows.get(place, rows))
            self._files[place] = min(came, self._files.get(place, came))
            self._oldest_rows = rows if self._oldest_rows is None else min(rows, self._oldest_rows)
            if entry.file.file_path in self._named:
                self._alive.add(entry.file.file_path)

    def needs(self, delete: Entry, unpartitioned: set[int]) -> bool:
        file, age = delete.file, delete.sequence_number
        if delete.only_data_file:
            return delete.only_data_file in self._alive
        if int(file.content) == POSITION_DELETES:
            oldest = self._files.get(_place(file))
            return oldest is not None and oldest <= age
        oldest = self._oldest_rows if file.spec_id in unpartitioned else self._rows.get(_place(file))
        return oldest is not None and oldest < age


def _place(file: DataFile) -> Hashable:
    return file.spec_id, *(repr(file.partition[place]) for place in range(len(file.partition)))
