"""The columns of CSV files, from every cell: numbers only where the text is exactly how a number is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from relayout.table.duckdb_text import LocalFile, delimiter_of, read_clause
from relayout.table.sources import FileContent

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_WHOLE, _NUMBER, _TRUTH, _TEXT = 1, 2, 4, 8
_TYPES = {
    0: "null",
    _WHOLE: "long",
    _NUMBER: "double",
    _WHOLE | _NUMBER: "double",
    _TRUTH: "boolean",
}


def csv_contents(connection: DuckDBPyConnection, files: Sequence[LocalFile]) -> dict[str, FileContent]:
    """Columns and rows per path; a duckdb.Error says that one of the files cannot be read."""
    groups: dict[tuple[object, str], list[LocalFile]] = {}
    for file in files:
        groups.setdefault((file.columns, delimiter_of(file.path)), []).append(file)
    contents: dict[str, FileContent] = {}
    for group in groups.values():
        contents |= _group_contents(connection, group)
    return contents


def _group_contents(connection: DuckDBPyConnection, files: Sequence[LocalFile]) -> dict[str, FileContent]:
    names = [name for name, _ in files[0].columns]
    place = "relayout_file"
    while place in {name.lower() for name in names}:
        place += "_"
    clause = read_clause(files, files[0].columns, filename=place)
    kinds = ", ".join(f"bit_or({_kind(_quoted(name))})" for name in names)
    # A file in which a column is all empty gives null for it: no text, no evidence.
    found = connection.execute(f"SELECT {place}, count(*), {kinds} FROM {clause} GROUP BY {place}").fetchall()
    contents = {file.path: FileContent(file.path, tuple((name, "null") for name in names)) for file in files}
    for path, rows, *evidence in found:
        columns = tuple((name, _TYPES.get(kind or 0, "string")) for name, kind in zip(names, evidence, strict=True))
        contents[path] = FileContent(path, columns, rows)
    return contents


def _kind(cell: str) -> str:
    # `01001`, `+5` and whole numbers beyond 64 bits would not come back as they were written, so they are text.
    return (
        f"CASE WHEN {cell} IS NULL THEN NULL "
        f"WHEN regexp_full_match({cell}, '0|-?[1-9][0-9]*') "
        f"THEN CASE WHEN TRY_CAST({cell} AS BIGINT) IS NULL THEN {_TEXT} ELSE {_WHOLE} END "
        f"WHEN regexp_full_match({cell}, '-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?') THEN {_NUMBER} "
        f"WHEN lower({cell}) IN ('true', 'false') THEN {_TRUTH} ELSE {_TEXT} END"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
