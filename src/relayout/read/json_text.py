"""The columns of JSON files, from the shape of every record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relayout.errors import RelayoutError
from relayout.table.duckdb_text import LONGEST_RECORD_BYTES, LocalFile, path_literal
from relayout.table.sources import FileContent
from relayout.table.types import from_duckdb_structure

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MIXED = "MIXED"
_WHOLE = ("BIGINT", "UBIGINT", "HUGEINT")


def json_contents(connection: DuckDBPyConnection, files: Sequence[LocalFile]) -> dict[str, FileContent]:
    """Columns and rows per path; a duckdb.Error says that one of the files cannot be read."""
    import duckdb

    paths = ", ".join(path_literal(file.path) for file in files)
    source = (
        f"read_json_objects([{paths}], format='auto', hive_partitioning=false, "
        f"maximum_object_size={LONGEST_RECORD_BYTES})"
    )
    per_shape = (
        f"SELECT filename, CAST(json_structure(json) AS VARCHAR) AS shape, count(*) FROM {source} "
        "GROUP BY filename, shape"
    )
    try:
        found = connection.execute(per_shape).fetchall()
    except duckdb.OutOfMemoryException:
        # Records with keys of their own each (ids as keys) have as many shapes as rows; this way is slow and small.
        merged = (
            f"SELECT filename, CAST(json_group_structure(json) AS VARCHAR), count(*) FROM {source} GROUP BY filename"
        )
        found = connection.execute(merged).fetchall()
    shapes: dict[str, Any] = {file.path: "NULL" for file in files}
    rows = dict.fromkeys(shapes, 0)
    for path, shape, count in found:
        shapes[path] = merged_shape(shapes[path], json.loads(shape))
        rows[path] += count
    return {path: _content(path, shape, rows[path]) for path, shape in shapes.items()}


def merged_shape(first: Any, second: Any) -> Any:
    """The shape of both: objects by key, arrays by element, whole numbers as one kind; MIXED where nothing fits.

    Commutative but for key order, and associative. A bare `JSON` is what an empty object looks like.
    """
    if first == second or second == "NULL":
        return first
    if first == "NULL":
        return second
    if isinstance(first, dict) and isinstance(second, dict):
        both = dict(first)
        for key, shape in second.items():
            both[key] = merged_shape(both[key], shape) if key in both else shape
        return both
    if isinstance(first, list) and isinstance(second, list):
        return [merged_shape(first[0], second[0])]
    for one, other in ((first, second), (second, first)):
        if one == "JSON" and isinstance(other, dict):
            return other
        if one in _WHOLE and other in (*_WHOLE, "DOUBLE"):
            return "DOUBLE" if other == "DOUBLE" else "BIGINT"
    return _MIXED


def _content(path: str, shape: Any, rows: int) -> FileContent:
    if shape in ("NULL", "JSON"):
        return FileContent(path, (), rows)
    if not isinstance(shape, dict):
        return FileContent(
            path, problem="it holds values that are not objects: one object per line, or one array of them"
        )
    try:
        columns = tuple((name, from_duckdb_structure(_settled(kind))) for name, kind in shape.items())
    except RelayoutError as problem:
        return FileContent(path, problem=problem.what)
    return FileContent(path, columns, rows)


def _settled(shape: Any) -> Any:
    if isinstance(shape, dict):
        return {key: _settled(kind) for key, kind in shape.items()}
    if isinstance(shape, list):
        return [_settled(kind) for kind in shape]
    return "JSON" if shape == _MIXED else shape
