"""The schema of an ingested table: declared, told by paths, inferred over all files; and what each file may be."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relayout.errors import SchemaConflict
from relayout.table.schemas import Column, Evolution, TableSchema, evolution, merged_schema
from relayout.table.sources import FileContent, SourceFile
from relayout.table.types import merged, parse_type, without_null

TEXT_FORMATS = ("json", "csv")
NANOSECONDS = {"timestamp_ns": "timestamp", "timestamptz_ns": "timestamptz"}
RESERVED = ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
"""Spark reads no table that has a column of such a name."""

CANONICAL_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """How sources are read, and what does not fit.

    `columns` are the content's and the paths' columns with their types; `unfit` gives per file why it cannot be read
    with them; `notes` are decisions that a user would want to know of.
    """

    columns: TableSchema
    path_columns: tuple[str, ...]
    unfit: Mapping[str, str]
    notes: tuple[str, ...] = ()


def path_column_types(files: Iterable[SourceFile], known: Mapping[str, str]) -> dict[str, str]:
    """Types of columns that paths tell: the known one, else `long` where every value is a plain integer, else text."""
    types: dict[str, str] = {}
    for file in files:
        for name, text in file.path_values:
            if name in known:
                types[name] = known[name]
            elif text is not None and not CANONICAL_INTEGER.fullmatch(text):
                types[name] = "string"
            else:
                types.setdefault(name, "long")
    return types


def infer(
    files: Sequence[SourceFile],
    contents: Mapping[str, FileContent],
    declared: Mapping[str, str],
    table: TableSchema | None,
    formats: Mapping[str, str],
    mapped: Iterable[str] = (),
) -> SourceSchema:
    """One schema over everything that was seen; a declared type wins over the table's, which wins over the files'.

    Texts and numbers in one column of JSON or CSV make it text; a Parquet file whose types do not go with the others'
    is unfit.
    """
    known = {name: parse_type(type) for name, type in declared.items()}
    if table is not None:
        known = {column.name: column.type for column in table if column.name not in set(mapped)} | known
    path_types = path_column_types(files, known)
    seen = [
        (file.path, [Column(name, type) for name, type in contents[file.path].columns])
        for file in files
        if file.path in contents and not contents[file.path].problem
    ]
    unfit = _misnamed(seen, [*known, *path_types])
    seen = [(path, held) for path, held in seen if path not in unfit]
    summed = merged_schema(seen)
    types = {column.name: column.type for column in summed.columns}
    notes: list[str] = []
    for conflict in summed.conflicts:
        if conflict.column in known:
            types[conflict.column] = known[conflict.column]
        elif all(formats.get(path) in TEXT_FORMATS for path, _ in seen):
            types[conflict.column] = "string"
            notes.append(f"{conflict}; read as string (declare its type under `schema` to choose another)")
        else:
            types[conflict.column] = _majority(conflict.column, seen)
    for name, kind in {**types, **{name: known[name] for name in declared}}.items():
        types[name] = known.get(name, without_null(kind))
        if types[name] in NANOSECONDS:
            types[name] = NANOSECONDS[types[name]]
            notes.append(f"column {name!r} holds nanoseconds; Spark tables keep microseconds, the rest is cut off")
    types |= path_types
    if summed.conflicts:
        appeared = dict.fromkeys(column.name for _, held in seen for column in held)
        types = {name: types[name] for name in appeared if name in types} | types
    columns = tuple(Column(name, kind) for name, kind in types.items())
    for path, held in seen:
        reason = _misfit(held, types, set(path_types), formats.get(path, ""))
        if reason:
            unfit[path] = reason
    return SourceSchema(columns, tuple(path_types), unfit, tuple(notes))


def _misnamed(seen: Iterable[tuple[str, Sequence[Column]]], known: Iterable[str]) -> dict[str, str]:
    """Files with a column that no table can have: without a name, reserved, or told from another by case only."""
    spelled = {name.lower(): name for name in known}
    unfit: dict[str, str] = {}
    for path, held in seen:
        here = dict(spelled)
        for column in held:
            other = here.setdefault(column.name.lower(), column.name)
            if not column.name:
                unfit[path] = "a column has no name"
            elif column.name.lower() in RESERVED:
                unfit[path] = f"column {column.name!r} has a name that Iceberg keeps for itself; rename it"
            elif other != column.name:
                unfit[path] = f"column {column.name!r} differs from {other!r} in case only; spell it in one way"
        if path not in unfit:
            spelled = here
    return unfit


def _majority(column: str, seen: Sequence[tuple[str, Sequence[Column]]]) -> str:
    votes = Counter(item.type for _, held in seen for item in held if item.name == column and item.type != "null")
    return votes.most_common(1)[0][0]


def _misfit(held: Sequence[Column], types: Mapping[str, str], in_path: set[str], format: str) -> str:
    """Why a file cannot be read with these types; empty when it can.

    Text columns take anything that text formats hold. Declared types are tried on the values themselves, so only a
    type that cannot hold the other's values at all is refused here.
    """
    for column in held:
        wanted = types.get(column.name)
        if wanted is None or column.name in in_path or wanted == column.type or column.type == "null":
            continue
        if wanted == "string" and format in TEXT_FORMATS:
            continue
        if format in TEXT_FORMATS and column.type == "string" and _written_as_text(wanted):
            continue
        if format in TEXT_FORMATS and _holds(wanted, column.type):
            continue
        if NANOSECONDS.get(column.type) == wanted:
            continue
        joined = merged(column.type, wanted)
        if joined is None or (format == "parquet" and not _holds(wanted, column.type)):
            return f"column {column.name!r} is {column.type}, the table has {wanted}"
    return ""


def _written_as_text(wanted: str) -> bool:
    """Types that JSON and CSV have no literal for, or that users quote; whether a text parses shows when it is read."""
    return not wanted.startswith(("struct", "list", "map", "boolean"))


def _holds(wanted: str, held: str) -> bool:
    if wanted == merged(held, wanted):
        return True
    numbers = ("int", "long", "float", "double", "decimal")
    return wanted.startswith(numbers) and held.startswith(numbers)


def table_schema(source: SourceSchema, mapped: Mapping[str, str]) -> TableSchema:
    """The table's columns: the source's, with mapped ones (name to type) in place or at the end."""
    columns = [Column(column.name, mapped.get(column.name, column.type)) for column in source.columns]
    present = {column.name for column in columns}
    return tuple(columns) + tuple(Column(name, kind) for name, kind in mapped.items() if name not in present)


def evolve(table: TableSchema, wanted: TableSchema) -> Evolution:
    """What the table must change to hold the wanted schema; incompatible types stop the table with the way out."""
    change = evolution(table, wanted)
    if change.incompatible:
        name, old, new = change.incompatible[0]
        raise SchemaConflict(
            f"column {name!r} is {old} in the table and {new} in the declaration",
            next=f"declare {name} as {old}, or drop the table and apply again to rebuild it from its sources",
        )
    return change


def mapping_hash(declared: Mapping[str, str], expressions: Mapping[str, str], formats: Iterable[str]) -> str:
    """A digest of everything declared that decides how a row is read."""
    told = {
        "schema": {name: parse_type(type) for name, type in declared.items()},
        "columns": dict(expressions),
        "format": sorted(set(formats)),
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
