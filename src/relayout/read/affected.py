"""Which batches snapshots changed that no ingestion made: by the files they added, took out or put deletes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relayout.read.edits import changed_files, live_at
from relayout.read.live_files import decoded_bound, stored_value
from relayout.read.manifests import DATA
from relayout.table.batches import BatchKey, Scalar
from relayout.table.facts import Snapshot
from relayout.table.types import text_of

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table


@dataclass(slots=True)
class Affected:
    """Batches that were touched, and files that mix batches, by the snapshot at which they can be read.

    `everything` says that only the whole table is sure to hold what changed.
    """

    keys: set[BatchKey] = field(default_factory=set)
    mixed: dict[int, set[str]] = field(default_factory=dict)
    everything: bool = False


def affected_by(table: Table, snapshots: Sequence[Snapshot], columns: Sequence[str]) -> Affected:
    """What these snapshots touched, in batches by these columns."""
    found = Affected(everything=not columns)
    for snapshot in snapshots:
        if found.everything:
            break
        _look_into(table, snapshot, columns, found)
    return found


def _look_into(table: Table, snapshot: Snapshot, columns: Sequence[str], found: Affected) -> None:
    named: set[str] = set()
    for entry in changed_files(table, snapshot.snapshot_id):
        if int(entry.file.content) == DATA:
            _take(table, entry.file, columns, found, snapshot.snapshot_id if entry.live else snapshot.parent_id)
        elif entry.only_data_file:
            named.add(entry.only_data_file)
        elif (key := _batch_of(table, entry.file, columns, by_bounds=False)) is not None:
            found.keys.add(key)
        else:
            found.everything = True
    for entry in live_at(table, snapshot.snapshot_id) if named else ():
        if int(entry.file.content) == DATA and entry.file.file_path in named:
            # What was deleted can only be seen before it was.
            _take(table, entry.file, columns, found, snapshot.parent_id)


def _take(table: Table, file: DataFile, columns: Sequence[str], found: Affected, readable_at: int | None) -> None:
    key = _batch_of(table, file, columns, by_bounds=True)
    if key is not None:
        found.keys.add(key)
    elif readable_at is None:
        found.everything = True
    else:
        found.mixed.setdefault(readable_at, set()).add(file.file_path)


def _batch_of(table: Table, file: DataFile, columns: Sequence[str], *, by_bounds: bool) -> BatchKey | None:
    """The only batch whose rows the file holds, if its partition or its bounds tell."""
    schema, spec = table.schema(), table.specs()[file.spec_id]
    items: list[tuple[str, Scalar]] = []
    for name in columns:
        column = schema.find_field(name)
        kind = text_of(column.field_type)
        place = next(
            (
                number
                for number, one in enumerate(spec.fields)
                if one.source_id == column.field_id and str(one.transform) == "identity"
            ),
            None,
        )
        if place is not None:
            items.append((name, stored_value(file.partition[place], kind)))
            continue
        known, value = _one_value(file, column.field_id, kind) if by_bounds else (False, None)
        if not known:
            return None
        items.append((name, value))
    return BatchKey(tuple(items))


def _one_value(file: DataFile, field_id: int, kind: str) -> tuple[bool, Scalar]:
    """Whether the column has one value in all rows of the file, and which."""
    nulls = (file.null_value_counts or {}).get(field_id)
    if nulls is not None and nulls == file.record_count and kind not in ("float", "double"):
        return True, None
    lower, upper = (file.lower_bounds or {}).get(field_id), (file.upper_bounds or {}).get(field_id)
    if nulls != 0 or lower is None or lower != upper or kind in ("float", "double", "binary"):
        return False, None
    if kind == "string" and len(lower) >= 16:
        # Bounds of long texts are cut off, and then equal ones say nothing.
        return False, None
    return True, decoded_bound(lower, kind)
