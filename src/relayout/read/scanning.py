"""Reading what source files hold, without Spark: columns with types, rows, and the values of batch columns.

What kernels and others need of this room:
    scan(files, format, value_columns, declared, memory_limit_bytes, threads, fetch) -> list[FileContent]
    row_estimate(files, format) -> int
    local_files.described(path, format, values) -> LocalFile          header or footer read, first-sight problems raised
    duckdb_text.read_clause(local_files, columns, filename="", exact_numbers=False) -> "(SELECT …)"
    reasons.plain_reason(engine_message, path) -> str
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from relayout.errors import RelayoutError
from relayout.read.apart import read_apart
from relayout.read.column_values import disagreements, with_values
from relayout.read.csv_text import csv_contents
from relayout.read.json_text import json_contents
from relayout.read.local_files import described, parquet_footer, sample_lines
from relayout.table.duckdb_text import SESSION_SETTINGS, LocalFile, text_literal
from relayout.table.sources import FileContent, SourceFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Fetch = Callable[[str, str], None]
"""Copies an object (its address) to a local path."""

_GROUP_FILES = 1000
_GROUP_BYTES = 1 << 30
_SMALLEST_MEMORY = 256 << 20
_SAMPLE_FILES = 5
_SAMPLE_BYTES = 1 << 18
_TYPICAL_ROW_BYTES = 200


def scan(
    files: Sequence[SourceFile],
    format: str,
    value_columns: Sequence[str],
    declared: Mapping[str, str],
    memory_limit_bytes: int,
    threads: int,
    fetch: Fetch | None = None,
) -> list[FileContent]:
    """Read all files whole and tell what each holds, in the order given; a bad file has a `problem` and no columns.

    `value_columns` are the batch columns that no path tells. A column that path and content both hold must agree.
    """
    # With several threads DuckDB 2.0 now and then passes over the cut last line of a JSON file that others follow.
    found: dict[str, FileContent] = {}
    with (
        tempfile.TemporaryDirectory(prefix="relayout-scan-") as scratch,
        closing(_Engine(scratch, memory_limit_bytes, 1 if format == "json" else threads)) as engine,
    ):
        scanner = _Scanner(engine, format, tuple(value_columns), declared, scratch, fetch)
        for group in _groups(files):
            found |= scanner.contents(group)
    return [found[file.path] for file in files]


def row_estimate(files: Sequence[SourceFile], format: str) -> int:
    """About how many rows local files hold, from the start of a few; objects count as typical rows."""
    local = [file for file in files if not file.path.startswith("s3://") and file.size_bytes]
    sampled = local[:: max(1, len(local) // _SAMPLE_FILES)][:_SAMPLE_FILES]
    rows = size = 0
    for file in sampled:
        try:
            if format == "parquet":
                few, stored = parquet_footer(file.path).rows, file.size_bytes
            else:
                few, stored = sample_lines(file.path, _SAMPLE_BYTES)
        except (RelayoutError, OSError):
            # A bad file is told of when it is read; for an estimate the others are enough.
            continue
        rows, size = rows + few, size + stored
    total = sum(file.size_bytes for file in files)
    return round(total * rows / size) if size else total // _TYPICAL_ROW_BYTES


class _Engine:
    """DuckDB for as long as a scan takes; after an error inside it, which ends a connection for good, a new one."""

    def __init__(self, scratch: str, memory_limit_bytes: int, threads: int) -> None:
        self._settings = (
            *SESSION_SETTINGS,
            f"SET memory_limit = '{max(memory_limit_bytes, _SMALLEST_MEMORY)}B'",
            f"SET threads = {max(1, threads)}",
            "SET preserve_insertion_order = false",
            "SET enable_progress_bar = false",
            f"SET temp_directory = {text_literal(os.path.join(scratch, 'spill'))}",
        )
        self.connection = self._connected()

    def _connected(self) -> DuckDBPyConnection:
        import duckdb

        connection = duckdb.connect()
        for setting in self._settings:
            connection.execute(setting)
        return connection

    def ask(self, question: Callable[[DuckDBPyConnection], dict[str, FileContent]]) -> dict[str, FileContent]:
        """What the question gives; an error that it raises holds up no later one."""
        import duckdb

        try:
            return question(self.connection)
        except (duckdb.InternalException, duckdb.FatalException):
            self.close()
            self.connection = self._connected()
            raise

    def close(self) -> None:
        self.connection.close()


def _groups(files: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    group: list[SourceFile] = []
    size = 0
    for file in files:
        if group and (len(group) == _GROUP_FILES or size + file.size_bytes > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size_bytes
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class _Scanner:
    """Scans one group of files; objects are copied to `scratch` for as long as their group takes."""

    engine: _Engine
    format: str
    value_columns: tuple[str, ...]
    declared: Mapping[str, str]
    scratch: str
    fetch: Fetch | None

    def contents(self, group: Sequence[SourceFile]) -> dict[str, FileContent]:
        found: dict[str, FileContent] = {}
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            readable: list[LocalFile] = []
            sources: dict[str, SourceFile] = {}
            for number, file in enumerate(group):
                try:
                    local = described(self._local(file, folder, number), self.format)
                except RelayoutError as problem:
                    found[file.path] = FileContent(file.path, problem=problem.what)
                except OSError as problem:
                    found[file.path] = FileContent(file.path, problem=f"cannot be opened: {problem.strerror}")
                else:
                    readable.append(local)
                    sources[local.path] = file
            for path, content in self._read(readable, sources).items():
                found[sources[path].path] = replace(content, path=sources[path].path)
        return found

    def _local(self, file: SourceFile, folder: str, number: int) -> str:
        if not file.path.startswith("s3://"):
            return file.path
        if self.fetch is None:
            raise RelayoutError("an object, and no store to fetch it from", where=file.path)
        # The endings tell the compression, the rest of the name may be too long for a local disk.
        ending = ".".join(file.path.rsplit("/", 1)[-1].split(".")[-2:])[-40:]
        local = os.path.join(folder, f"{number}.{ending}")
        self.fetch(file.path, local)
        return local

    def _read(self, files: Sequence[LocalFile], sources: Mapping[str, SourceFile]) -> dict[str, FileContent]:
        contents = read_apart(files, self._columns)
        good = {path: content for path, content in contents.items() if not content.problem}
        told = {file.path: dict(sources[file.path].path_values) for file in files}
        for path, problem in disagreements(self.engine.connection, files, good, told, self.declared).items():
            good.pop(path)
            contents[path] = FileContent(path, problem=problem)
        if self.value_columns:
            alive = [file for file in files if file.path in good]
            contents |= with_values(self.engine.connection, alive, good, self.value_columns, self.declared)
        return contents

    def _columns(self, files: Sequence[LocalFile]) -> dict[str, FileContent]:
        if self.format == "json":
            return self.engine.ask(lambda connection: json_contents(connection, files))
        if self.format == "csv":
            return self.engine.ask(lambda connection: csv_contents(connection, files))
        return {file.path: FileContent(file.path, file.columns, parquet_footer(file.path).rows) for file in files}
