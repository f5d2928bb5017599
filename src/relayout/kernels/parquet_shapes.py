"""What columns Parquet files hold, told by their footers alone, so that files of one shape are read in one go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.table.duckdb_text import path_literal

if TYPE_CHECKING:
    import duckdb

_LIST, _MAP = "LIST", "MAP"

_WIDENED = {("INTEGER", "BIGINT"), ("FLOAT", "DOUBLE"), ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")}
"""What a cast changes in no value; INT96 moments come without their zone, and they mean UTC."""


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a file, or a part of one: its name, its field id where there is one, its DuckDB type."""

    name: str
    field_id: int | None
    type: str
    parts: tuple[FileColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """All columns of a file, in their order."""

    columns: tuple[FileColumn, ...]

    @property
    def has_field_ids(self) -> bool:
        return any(column.field_id is not None for column in self.columns)

    def names_are_distinct(self) -> bool:
        """DuckDB renames columns whose names differ in case only."""
        return len({column.name.lower() for column in self.columns}) == len(self.columns)


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column of the table, or a part of one, as files may hold it; `parts` of a list or map have fixed names.

    `kind` is `leaf`, `struct`, `list` or `map`. `default` is DuckDB text for files that lack the column.
    """

    name: str
    field_id: int
    type: str
    kind: str
    parts: tuple[WantedColumn, ...] = ()
    default: str = ""


def shapes_of(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> dict[str, Shape]:
    """The shape of each file; files of one shape share the value."""
    if not paths:
        return {}
    listed = ", ".join(path_literal(path) for path in paths)
    rows = connection.execute(
        "SELECT elements, list(file_name) FROM (SELECT file_name, list([name, field_id::VARCHAR, num_children::VARCHAR,"
        " coalesce(converted_type, ''), coalesce(duckdb_type, '')] ORDER BY column_id) AS elements"
        f" FROM parquet_schema([{listed}]) GROUP BY file_name) GROUP BY elements"
    ).fetchall()
    found: dict[str, Shape] = {}
    for elements, files in rows:
        walk = iter(elements)
        root = next(walk)
        shape = Shape(tuple(_column(walk) for _ in range(int(root[2] or 0))))
        found |= dict.fromkeys(files, shape)
    return found


def _column(walk: Iterator[Sequence[str | None]]) -> FileColumn:
    name, field_id, children, converted, kind = next(walk)
    parts = tuple(_column(walk) for _ in range(int(children or 0)))
    if converted in (_LIST, _MAP) and len(parts) == 1:
        # The repeated group between a list and its elements has no meaning of its own.
        parts = parts[0].parts
    return FileColumn(str(name), None if field_id is None else int(field_id), str(kind or ""), parts)


def mismatch(wanted: WantedColumn, found: FileColumn) -> str:
    """Why the file's column cannot be read as the wanted one by a cast alone; empty when it can."""
    if wanted.kind == "leaf":
        return "" if _casts(found.type, wanted.type) else f"{wanted.name} is {found.type} in a file, not {wanted.type}"
    if wanted.kind == "struct":
        return _struct_mismatch(wanted, found)
    if len(found.parts) != len(wanted.parts):
        return f"{wanted.name} is laid out in a way of its own"
    for inner, there in zip(wanted.parts, found.parts, strict=True):
        if there.field_id not in (None, inner.field_id):
            return f"{wanted.name} holds other elements in a file"
        if why := mismatch(inner, there):
            return why
    return ""


def _struct_mismatch(wanted: WantedColumn, found: FileColumn) -> str:
    """Parts are matched by name in a cast, and it must be the same part by id."""
    if not found.parts:
        return f"{wanted.name} has no parts in a file"
    by_name = {part.name.lower(): part for part in found.parts}
    ids = {part.field_id: part for part in found.parts}
    if None in ids or len(by_name) != len(found.parts):
        return f"parts of {wanted.name} cannot be told apart in a file"
    for part in wanted.parts:
        same_name, same_id = by_name.get(part.name.lower()), ids.get(part.field_id)
        if same_name is not same_id:
            return f"{wanted.name}.{part.name} was renamed"
        if same_id is None:
            if part.default:
                return f"{wanted.name}.{part.name} has a default"
        elif why := mismatch(part, same_id):
            return why
    return ""


def _casts(found: str, wanted: str) -> bool:
    if found == wanted or (found, wanted) in _WIDENED:
        return True
    if found.startswith("DECIMAL(") and wanted.startswith("DECIMAL("):
        digits, scale = _decimal(found)
        return _decimal(wanted) >= (digits, scale) and _decimal(wanted)[1] == scale
    return False


def _decimal(text: str) -> tuple[int, int]:
    digits, scale = text[len("DECIMAL(") : -1].split(",")
    return int(digits), int(scale)


def null_counts(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[str]
) -> tuple[dict[str, int], dict[tuple[str, str], int | None]]:
    """Rows of each file, and the nulls in each top-level column of each file where its footer counts them."""
    listed = ", ".join(path_literal(path) for path in paths)
    rows = dict(connection.execute(f"SELECT file_name, num_rows FROM parquet_file_metadata([{listed}])").fetchall())
    counted: dict[tuple[str, str], int | None] = {}
    for file, column, nulls, complete in connection.execute(
        "SELECT file_name, path_in_schema, sum(stats_null_count), bool_and(stats_null_count IS NOT NULL)"
        f" FROM parquet_metadata([{listed}]) GROUP BY ALL"
    ).fetchall():
        counted[file, column] = int(nulls) if complete else None
    return rows, counted


def by_shape(paths: Sequence[str], shapes: Mapping[str, Shape]) -> dict[Shape, list[int]]:
    """Places of the files in `paths`, by shape."""
    grouped: dict[Shape, list[int]] = {}
    for place, path in enumerate(paths):
        grouped.setdefault(shapes[path], []).append(place)
    return grouped
