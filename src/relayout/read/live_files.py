"""Which live files hold rows of a batch: all of a file, some of it, or perhaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from relayout.read.manifests import DATA, EQUALITY_DELETES, Entry, live_entries
from relayout.table.batches import BatchKey, Scalar
from relayout.table.scalars import partition_json
from relayout.table.types import plain, text_of

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression, Reference
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


_COUNTED = ("date", "time", "timestamp", "timestamptz")
"""Types whose values are days or microseconds since an epoch where manifests hold them."""

_ORDERED = ("int", "long", "string", "date")
"""Types whose plain values have the order of the bounds."""


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file in the JSON form of ContentFileParser and the delete files that are for it alone."""

    content: Mapping[str, Any]
    deletes: tuple[Mapping[str, Any], ...]

    @property
    def path(self) -> str:
        return str(self.content["file-path"])


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """Files whose rows all belong to the batches, and files that may hold other rows too."""

    whole: tuple[LiveFile, ...]
    mixed: tuple[LiveFile, ...]


def files_of_batches(table: Table, keys: Sequence[BatchKey]) -> BatchFiles:
    """Live files of the current snapshot that may hold rows of these batches."""
    snapshot = table.current_snapshot()
    if snapshot is None or not keys:
        return BatchFiles((), ())
    whole: list[LiveFile] = []
    mixed: list[LiveFile] = []
    deletes = _deletes_by_data_file(table, snapshot)
    for file in _files_that_may_hold(table, snapshot, keys):
        live = LiveFile(content_json(table, file), tuple(deletes.get(file.file_path, ())))
        everything = any(not key.items or holds_only(table, file, key) for key in keys)
        (whole if everything else mixed).append(live)
    return BatchFiles(tuple(whole), tuple(mixed))


def _files_that_may_hold(table: Table, snapshot: Snapshot, keys: Sequence[BatchKey]) -> Iterator[DataFile]:
    if not (snapshot.summary and int(snapshot.summary["total-equality-deletes"] or 0)):
        return (task.file for task in table.scan(row_filter=batch_filter(table, keys)).plan_files())
    # PyIceberg plans nothing where equality deletes are, so there every file is looked at.
    manifests = [manifest for manifest in snapshot.manifests(table.io) if int(manifest.content) == DATA]
    files = (entry.file for entry in live_entries(manifests, table.io))
    return (file for file in files if any(may_hold(table, file, key) for key in keys))


def _deletes_by_data_file(table: Table, snapshot: Snapshot) -> dict[str, list[Mapping[str, Any]]]:
    """Delete files and vectors that are for one data file; PyIceberg's plan knows a vector only by its partition."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    manifests = [manifest for manifest in snapshot.manifests(table.io) if int(manifest.content) != DATA]
    for entry in live_entries(manifests, table.io):
        if entry.only_data_file:
            found.setdefault(entry.only_data_file, []).append(delete_json(table, entry))
    return found


def delete_json(table: Table, entry: Entry) -> dict[str, Any]:
    """A delete file or deletion vector in the JSON form of ContentFileParser."""
    told = content_json(table, entry.file)
    if entry.only_data_file:
        told["referenced-data-file"] = entry.only_data_file
    if entry.content_offset is not None:
        told |= {"content-offset": entry.content_offset, "content-size-in-bytes": entry.content_size_in_bytes}
    return told


def batch_filter(table: Table, keys: Iterable[BatchKey]) -> BooleanExpression:
    """The rows of these batches as a PyIceberg expression."""
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, Or, Reference

    schema = table.schema()
    combined: BooleanExpression = AlwaysFalse()
    for key in keys:
        rows: BooleanExpression = AlwaysTrue()
        for name, value in key.items:
            kind = schema.find_field(name).field_type
            rows = And(rows, _test_of(Reference(name), value, text_of(kind)))
        combined = Or(combined, rows)
    return combined


def _test_of(term: Reference, value: Scalar, kind: str) -> BooleanExpression:
    from pyiceberg.expressions import EqualTo, IsNaN, IsNull

    if value is None:
        return IsNull(term=term)
    if value == "NaN" and kind in ("float", "double"):
        return IsNaN(term=term)
    literal: Any = value
    if kind in ("float", "double"):
        literal = float(value)
    elif kind.startswith("decimal"):
        literal = str(value)
    return EqualTo(term=term, value=literal)


def holds_only(table: Table, file: DataFile, key: BatchKey) -> bool:
    """Whether every row of the file belongs to the batch, by its partition or by exact bounds."""
    return all(_has_one_value(table, file, name, value) for name, value in key.items)


def _has_one_value(table: Table, file: DataFile, name: str, value: Scalar) -> bool:
    column = table.schema().find_field(name)
    kind = text_of(column.field_type)
    spec = table.specs()[file.spec_id]
    for position, field in enumerate(spec.fields):
        if field.source_id == column.field_id and str(field.transform) == "identity":
            return stored_value(file.partition[position], kind) == value
    return _bounds_say(file, column.field_id, kind, value)


def _bounds_say(file: DataFile, field_id: int, kind: str, value: Scalar) -> bool:
    nulls = (file.null_value_counts or {}).get(field_id)
    if value is None:
        return nulls is not None and nulls == file.record_count
    lower, upper = (file.lower_bounds or {}).get(field_id), (file.upper_bounds or {}).get(field_id)
    if nulls != 0 or lower is None or lower != upper:
        return False
    if kind in ("float", "double"):
        # Bounds leave NaN out, so they cannot say that nothing else is there.
        return False
    return decoded_bound(lower, kind) == value


def decoded_bound(raw: bytes, kind: str) -> Scalar:
    """A bound in the plain form of its type."""
    if kind in ("int", "long"):
        return int.from_bytes(raw, "little", signed=True)
    from pyiceberg.conversions import from_bytes
    from pyiceberg.types import PrimitiveType

    from relayout.table.types import iceberg_type

    primitive = iceberg_type(kind)
    if not isinstance(primitive, PrimitiveType):
        raise ValueError(f"{kind} has no bounds")
    return stored_value(from_bytes(primitive, raw), kind)


def may_hold(table: Table, file: DataFile, key: BatchKey) -> bool:
    """Whether the file may hold rows of the batch; false only where its partition or bounds rule that out."""
    for name, value in key.items:
        column = table.schema().find_field(name)
        kind = text_of(column.field_type)
        spec = table.specs()[file.spec_id]
        for position, field in enumerate(spec.fields):
            identity = field.source_id == column.field_id and str(field.transform) == "identity"
            if identity and stored_value(file.partition[position], kind) != value:
                return False
        if int(file.content) == DATA and _bounds_exclude(file, column.field_id, kind, value):
            return False
    return True


def _bounds_exclude(file: DataFile, field_id: int, kind: str, value: Scalar) -> bool:
    nulls = (file.null_value_counts or {}).get(field_id)
    if value is None:
        return nulls == 0
    lower, upper = (file.lower_bounds or {}).get(field_id), (file.upper_bounds or {}).get(field_id)
    if lower is None or upper is None:
        return nulls is not None and nulls == file.record_count and kind not in ("float", "double")
    if kind not in _ORDERED:
        return False
    low, high = decoded_bound(lower, kind), decoded_bound(upper, kind)
    if isinstance(value, int) and isinstance(low, int) and isinstance(high, int):
        return not low <= value <= high
    return isinstance(value, str) and isinstance(low, str) and isinstance(high, str) and not low <= value <= high


def stored_value(value: Any, kind: str) -> Scalar:
    """A value as manifests hold it in plain form; a moment beyond the calendar stays the number it is."""
    if not isinstance(value, int) or isinstance(value, bool) or kind not in _COUNTED:
        return plain(value, kind)
    try:
        if kind == "date":
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    except OverflowError:
        return value
    if kind == "time":
        return plain(moment.time(), kind)
    return plain(moment if kind == "timestamptz" else moment.replace(tzinfo=None), kind)


def content_json(table: Table, file: DataFile) -> dict[str, Any]:
    """A file of a manifest in the JSON form of ContentFileParser, as far as a removal needs it."""
    spec = table.specs()[file.spec_id]
    schema = table.schema()
    values = []
    for position, result in enumerate(spec.partition_type(schema).fields):
        kind = text_of(result.field_type)
        values.append(partition_json(stored_value(file.partition[position], kind), kind))
    described: dict[str, Any] = {
        "spec-id": file.spec_id,
        "content": {0: "data", 1: "position-deletes", 2: "equality-deletes"}[int(file.content)],
        "file-path": file.file_path,
        "file-format": str(file.file_format.value).lower(),
        "partition": values,
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
    }
    if int(file.content) == EQUALITY_DELETES and file.equality_ids:
        described["equality-ids"] = list(file.equality_ids)
    return described
