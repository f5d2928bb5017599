"""How many rows of a batch are live: from manifests where these can tell, elsewhere from the files' batch columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from relayout.read.live_files import holds_only, may_hold
from relayout.read.manifests import DATA, EQUALITY_DELETES, Entry, live_entries
from relayout.table.batches import BatchKey
from relayout.table.types import plain, text_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table


def rows_of_batches(table: Table, keys: Sequence[BatchKey]) -> dict[BatchKey, int | None]:
    """Live rows of each of these batches, which all have the same columns; None where only an engine could count them.

    Deletes by key are not looked for: batches that they may reach must be known by other means.
    """
    snapshot = table.current_snapshot()
    entries = list(live_entries(snapshot.manifests(table.io), table.io)) if snapshot else []
    deletes = [entry for entry in entries if int(entry.file.content) != DATA]
    by_key = any(int(entry.file.content) == EQUALITY_DELETES for entry in deletes)
    deleted: Counter[str] = Counter()
    for entry in deletes:
        deleted[entry.only_data_file] += int(entry.file.record_count)
    shared = {_partition_of(entry) for entry in deletes if not entry.only_data_file}
    rows: dict[BatchKey, int] = dict.fromkeys(keys, 0)
    mixed: dict[str, list[BatchKey]] = {}
    for entry in entries:
        if int(entry.file.content) != DATA:
            continue
        held = [key for key in keys if may_hold(table, entry.file, key)]
        only = next((key for key in held if holds_only(table, entry.file, key)), None)
        if only is not None and _partition_of(entry) not in shared:
            rows[only] += int(entry.file.record_count) - deleted[entry.file.file_path]
        elif held:
            mixed[entry.file.file_path] = held
    if by_key:
        # PyIceberg reads no table that has them.
        return {**rows, **dict.fromkeys((key for held in mixed.values() for key in held), None)}
    counted = _counted(table, mixed, keys[0].columns) if mixed else {}
    return {key: known + counted.get(key, 0) for key, known in rows.items()}


def _partition_of(entry: Entry) -> tuple[int, str]:
    return entry.file.spec_id, repr(entry.file.partition)


def _counted(table: Table, paths: Collection[str], columns: Sequence[str]) -> Mapping[BatchKey, int]:
    """Rows of each batch in these files, read column by column and file by file."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    scan = table.scan(selected_fields=tuple(columns))
    tasks = [task for task in scan.plan_files() if task.file.file_path in paths]
    reader = ArrowScan(table.metadata, table.io, scan.projection(), AlwaysTrue())
    return _tally(reader.to_record_batches(tasks), {name: _kind_of(table, name) for name in columns})


def _tally(batches: Iterable[pa.RecordBatch], kinds: Mapping[str, str]) -> Counter[BatchKey]:
    import pyarrow as pa

    found: Counter[BatchKey] = Counter()
    for batch in batches:
        groups = pa.Table.from_batches([batch]).group_by(list(kinds)).aggregate([([], "count_all")])
        for row in groups.to_pylist():
            values = (None if row[name] is None else plain(row[name], kind) for name, kind in kinds.items())
            found[BatchKey.of(kinds, values)] += row["count_all"]
    return found


def _kind_of(table: Table, name: str) -> str:
    return text_of(table.schema().find_field(name).field_type)
