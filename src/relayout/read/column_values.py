"""The values that single columns hold in source files: batch keys, and whether content and path agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from relayout.read.apart import read_apart
from relayout.table.duckdb_text import NEEDS_EXACT_NUMBERS, LocalFile, plain_text, read_clause
from relayout.table.names import quote_duckdb
from relayout.table.sources import FileContent
from relayout.table.types import from_text, is_primitive

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FILE = "relayout_path_of_file"
Columns = tuple[tuple[str, str], ...]
Contents = dict[str, FileContent]


def with_values(
    connection: DuckDBPyConnection,
    files: Sequence[LocalFile],
    good: Mapping[str, FileContent],
    names: Sequence[str],
    declared: Mapping[str, str],
) -> Contents:
    """The good contents again, each with the distinct combinations of these columns' values."""

    def read(columns: Columns, part: Sequence[LocalFile]) -> Contents:
        texts = ", ".join(plain_text(quote_duckdb(name), type) for name, type in columns)
        found = _ask(connection, part, columns, f"DISTINCT {_FILE}, {texts}", "")
        values: dict[str, list[tuple[str | None, ...]]] = {file.path: [] for file in part}
        for path, *row in found:
            values[path].append(tuple(row))
        return {
            path: replace(good[path], batch_values=tuple(sorted(rows, key=_nulls_first)))
            for path, rows in values.items()
        }

    return _by_types(files, good, names, declared, read)


def disagreements(
    connection: DuckDBPyConnection,
    files: Sequence[LocalFile],
    good: Mapping[str, FileContent],
    told: Mapping[str, Mapping[str, str | None]],
    declared: Mapping[str, str],
) -> dict[str, str]:
    """Files whose content says something else than their path does (`told`), and what."""

    def read(columns: Columns, part: Sequence[LocalFile]) -> Contents:
        # If the smallest and the largest value are what the path says, all are.
        ends = ", ".join(
            f"{end}({plain_text(quote_duckdb(name), type)})" for name, type in columns for end in ("min", "max")
        )
        found = _ask(connection, part, columns, f"{_FILE}, {ends}", f" GROUP BY {_FILE}")
        empty = {file.path: FileContent(file.path, batch_values=()) for file in part}
        return empty | {path: FileContent(path, batch_values=(tuple(row),)) for path, *row in found}

    shared: dict[tuple[str, ...], list[LocalFile]] = {}
    for file in files:
        if file.path in good:
            held = {name for name, _ in good[file.path].columns}
            shared.setdefault(tuple(name for name in told[file.path] if name in held), []).append(file)
    problems: dict[str, str] = {}
    for names, part in shared.items():
        if names:
            for path, content in _by_types(part, good, names, declared, read).items():
                columns = _typed(names, good[path], declared)
                if problem := content.problem or _disagreement(content, columns, told[path]):
                    problems[path] = problem
    return problems


def _by_types(
    files: Sequence[LocalFile],
    good: Mapping[str, FileContent],
    names: Sequence[str],
    declared: Mapping[str, str],
    read: Callable[[Columns, Sequence[LocalFile]], Contents],
) -> Contents:
    groups: dict[Columns, list[LocalFile]] = {}
    for file in files:
        groups.setdefault(_typed(names, good[file.path], declared), []).append(file)
    found: Contents = {}
    for columns, part in groups.items():
        found |= read_apart(part, partial(read, columns))
    return found


def _typed(names: Sequence[str], content: FileContent, declared: Mapping[str, str]) -> Columns:
    held = dict(content.columns)
    types = {name: declared.get(name) or held.get(name, "string") for name in names}
    return tuple((name, type if type != "null" and is_primitive(type) else "string") for name, type in types.items())


def _ask(
    connection: DuckDBPyConnection, files: Sequence[LocalFile], columns: Columns, select: str, behind: str
) -> list[tuple[Any, ...]]:
    import duckdb

    def query(exact: bool) -> str:
        return f"SELECT {select} FROM {read_clause(files, columns, filename=_FILE, exact_numbers=exact)}{behind}"

    try:
        return connection.execute(query(exact=False)).fetchall()
    except duckdb.Error as problem:
        if NEEDS_EXACT_NUMBERS not in str(problem):
            raise
    return connection.execute(query(exact=True)).fetchall()


def _nulls_first(row: tuple[str | None, ...]) -> tuple[tuple[bool, str], ...]:
    return tuple((text is not None, text or "") for text in row)


def _disagreement(content: FileContent, columns: Columns, told: Mapping[str, str | None]) -> str:
    for row in content.batch_values or ():
        for number, (name, type) in enumerate(columns):
            for text in row[2 * number : 2 * number + 2]:
                if text is not None and not _same(text, told[name], type):
                    return f"its path says that {name} is {told[name]}, its content says {text}"
    return ""


def _same(text: str, told: str | None, type: str) -> bool:
    try:
        return told is not None and from_text(text, type) == from_text(told, type)
    except ValueError:
        return text == told
