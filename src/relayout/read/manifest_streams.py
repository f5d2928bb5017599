"""Manifests of a snapshot and the live files in them, streamed; nothing is kept that was not asked for."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from relayout.errors import EnvironmentProblem, PlanRefused, Retry
from relayout.read.avro_records import AvroRecords
from relayout.read.manifests import FILE_PATH_FIELD_ID
from relayout.table.evidence import Value
from relayout.table.live_entries import NO_COUNTS, POSITION_DELETES, ColumnCounts, LiveEntry, Manifest, Summary
from relayout.table.partition_keys import PartitionSpec, SpecField
from relayout.table.transforms import Transform

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

# Field ids of manifest lists and manifests (https://iceberg.apache.org/spec/#manifests).
_LIST = frozenset([500, 501, 502, 503, 504, 505, 507, 508, 509, 510, 511, 515, 517, 518, 520])
_DATA_FILE = 2
_COUNTS = (109, 110, 137, 125, 128)
_ENTRY = frozenset([0, 1, 3, _DATA_FILE, 134, 100, 101, 102, 103, 104, 131, 135, 140, 142, 143, 144, 145])
_DELETED = 2

_ADDED_FILES, _EXISTING_FILES = 504, 505


def specs_of(table: Table) -> dict[int, PartitionSpec]:
    """Every partition spec of the table by its id, whether or not its source columns still exist."""
    return {
        spec.spec_id: PartitionSpec(
            spec.spec_id,
            tuple(
                SpecField(field.field_id, field.source_id, field.name, Transform.parse(str(field.transform)))
                for field in spec.fields
            ),
        )
        for spec in table.metadata.specs().values()
    }


def manifests_of(table: Table, snapshot: Snapshot, specs: Mapping[int, PartitionSpec]) -> list[Manifest]:
    """The manifests of a snapshot, in the order of its list; a spec that the table does not have is refused."""
    if not snapshot.manifest_list:
        raise PlanRefused(
            f"snapshot {snapshot.snapshot_id} of {table.name()} names its manifests in a form from before 2019",
            next="append to the table or rewrite its manifests with Spark, then plan again",
        )
    found = []
    for record in _records(table.io, snapshot.manifest_list, _LIST):
        spec_id = record.get(502) or 0
        if spec_id not in specs:
            raise unknown_spec(spec_id, record[500])
        counts = (record.get(_ADDED_FILES), record.get(_EXISTING_FILES))
        files = None if None in counts else sum(count or 0 for count in counts)
        manifest = Manifest(
            path=record[500],
            length=record[501],
            spec_id=spec_id,
            holds_deletes=record.get(517) == 1,
            sequence_number=record.get(515) or 0,
            snapshot_id=record.get(503) or snapshot.snapshot_id,
            files=files,
            first_row_id=record.get(520),
            summaries=_summaries(record.get(507)),
        )
        found.append(manifest)
    return found


def unknown_spec(spec_id: int, manifest: str) -> PlanRefused:
    """The refusal of a file whose partition nobody can tell."""
    return PlanRefused(
        f"a manifest names partition spec {spec_id}, which the table does not have",
        where=manifest,
        next="the table's metadata is damaged; `relayout rollback` to a snapshot before it, or restore its metadata",
    )


def _summaries(told: list[Mapping[int, Any]] | None) -> tuple[Summary, ...]:
    """Summaries with their bounds still in binary form, which only the types of the spec's fields can tell."""
    return tuple(
        Summary(bool(each.get(509)), each.get(518) is not False, each.get(510), each.get(511)) for each in told or ()
    )


def live_entries(
    io: FileIO, manifest: Manifest, spec: PartitionSpec, types: PartitionTypes, columns: frozenset[int] = frozenset()
) -> Iterator[LiveEntry]:
    """The live files of a manifest, with statistics of these columns; `types` learns what its tuples are made of."""
    asked = columns | {FILE_PATH_FIELD_ID} if manifest.holds_deletes else columns
    next_row_id = None if manifest.holds_deletes else manifest.first_row_id
    for record in _records(io, manifest.path, _ENTRY | frozenset(_COUNTS) if asked else _ENTRY, types.learn(spec)):
        if record[0] == _DELETED:
            continue
        file = record[_DATA_FILE]
        row_id = file.get(142)
        if row_id is None and next_row_id is not None:
            row_id, next_row_id = next_row_id, next_row_id + file[103]
        yield _entry(record, file, manifest, spec, asked, row_id)


def _entry(
    record: Mapping[int, Any],
    file: Mapping[int, Any],
    manifest: Manifest,
    spec: PartitionSpec,
    asked: frozenset[int],
    row_id: int | None,
) -> LiveEntry:
    sequence = record.get(3)
    content = file.get(134) or 0
    counts = _counts(file, asked) if asked else NO_COUNTS
    return LiveEntry(
        content=content,
        path=file[100],
        format=str(file[101]).lower(),
        spec_id=manifest.spec_id,
        partition=_in_order(file[102], spec),
        rows=file[103],
        size_bytes=file[104],
        data_sequence_number=manifest.sequence_number if sequence is None else sequence,
        first_row_id=row_id,
        counts=counts,
        data_file=_only_data_file(file, counts) if content == POSITION_DELETES else "",
        offset=file.get(144),
        length=file.get(145),
        equality_ids=tuple(file.get(135) or ()),
        sort_order_id=file.get(140),
    )


def _counts(file: Mapping[int, Any], asked: frozenset[int]) -> ColumnCounts:
    values, nulls, nans, lower, upper = (
        {column: told[column] for column in asked if column in told} if (told := file.get(field)) else {}
        for field in _COUNTS
    )
    return ColumnCounts(values, nulls, nans, lower, upper)


def _only_data_file(file: Mapping[int, Any], counts: ColumnCounts) -> str:
    if file.get(143):
        return str(file[143])
    lower, upper = counts.lower.get(FILE_PATH_FIELD_ID), counts.upper.get(FILE_PATH_FIELD_ID)
    return lower.decode("utf-8", "surrogatepass") if lower and lower == upper else ""


def _in_order(values: Mapping[int, Value], spec: PartitionSpec) -> tuple[Value, ...]:
    """A tuple in the order of the spec's fields; writers that knew no field ids kept that order anyway."""
    if all(field.field_id in values for field in spec.fields):
        return tuple(values[field.field_id] for field in spec.fields)
    return tuple(values.values())


class PartitionTypes:
    """The types that partition tuples were written with, as the manifests themselves tell, by spec."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[str, ...]] = {}

    def learn(self, spec: PartitionSpec) -> Callable[[Any], None]:
        def learned(schema: Any) -> None:
            told = _tuple_types(schema)
            self._found[spec.spec_id] = tuple(_in_order(told, spec))

        return learned

    def of(self, spec_id: int) -> tuple[str, ...]:
        return self._found.get(spec_id, ())


def _tuple_types(schema: Any) -> dict[int, str]:
    data_file = next(field["type"] for field in schema["fields"] if field["field-id"] == _DATA_FILE)
    partition = next(field["type"] for field in data_file["fields"] if field["field-id"] == 102)
    return {field["field-id"]: _type_text(field["type"]) for field in partition["fields"]}


def _type_text(shape: Any) -> str:
    """The Iceberg type behind an Avro type."""
    if isinstance(shape, list):
        return _type_text(next((each for each in shape if each != "null"), "null"))
    if isinstance(shape, str):
        return {"bytes": "binary"}.get(shape, shape)
    logical = shape.get("logicalType")
    match logical:
        case "date" | "uuid":
            return str(logical)
        case "time-micros":
            return "time"
        case "timestamp-micros" | "timestamp-nanos":
            return "timestamp" + ("tz" if shape.get("adjust-to-utc") else "") + ("_ns" if "nanos" in logical else "")
        case "decimal":
            return f"decimal({shape['precision']},{shape.get('scale', 0)})"
    if shape["type"] == "fixed":
        return f"fixed[{shape['size']}]"
    return _type_text(shape["type"])


def _records(
    io: FileIO, path: str, wanted: frozenset[int], learn: Callable[[Any], None] | None = None
) -> Iterator[Mapping[int, Any]]:
    try:
        with io.new_input(path).open() as stream:
            records = AvroRecords(stream, wanted)
            if learn is not None:
                learn(records.schema)
            yield from records
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        raise EnvironmentProblem(
            f"a manifest cannot be read: {error}",
            where=path,
            next="was the table's folder changed by hand? restore the file, or roll back to a snapshot without it",
            retry=Retry.SAFE,
        ) from error
