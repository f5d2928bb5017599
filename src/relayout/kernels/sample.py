"""Laying out the first rows of one source file, to see what a layout makes of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.errors import RelayoutError
from relayout.kernels.write import TargetField, transformed
from relayout.read.local_files import described
from relayout.table.duckdb_text import SESSION_SETTINGS, read_clause, text_literal
from relayout.table.layouts import PartitionField
from relayout.table.scalars import from_text
from relayout.table.sources import SourceFile

if TYPE_CHECKING:
    import duckdb

MOST_ROWS = 200_000


def lay_out_sample(
    file: SourceFile,
    format: str,
    columns: Sequence[tuple[str, str]],
    fields: Sequence[TargetField],
    folder: Path,
) -> tuple[int, int, int, int, tuple[tuple[str, int], ...]] | None:
    """Rows, source bytes, Parquet bytes, partition tuples and values per level; None when the file cannot be read."""
    import duckdb

    kinds = dict(columns)
    values = tuple(
        (name, None if text is None else from_text(text, kinds[name]))
        for name, text in file.path_values
        if name in kinds
    )
    with duckdb.connect() as connection:
        for setting in (*SESSION_SETTINGS, "SET enable_progress_bar = false", "SET memory_limit = '1GB'"):
            connection.execute(setting)
        try:
            source = read_clause([described(file.path, format, values)], columns)
            whole = file.size_bytes
            connection.execute(f"CREATE TEMP TABLE sample AS SELECT * FROM {source} LIMIT {MOST_ROWS}")
        except (duckdb.Error, RelayoutError, ValueError, OSError):
            # What is wrong with the file is told where it is loaded; a forecast can do without it.
            return None
        rows = _count(connection, "SELECT count(*) FROM sample")
        if rows == MOST_ROWS:
            whole = _bytes_read(connection, source, rows, whole)
        place = folder / "sample.parquet"
        connection.execute(f"COPY sample TO {text_literal(str(place))} (FORMAT parquet, COMPRESSION zstd)")
        terms = [(_level(field), transformed(connection, field)) for field in fields]
        tuples = 1
        if terms:
            distinct = ", ".join(term for _, term in terms)
            tuples = _count(connection, f"SELECT count(*) FROM (SELECT DISTINCT {distinct} FROM sample)")
        levels = tuple(
            (level, _count(connection, f"SELECT count(DISTINCT {term}) FROM sample")) for level, term in terms
        )
        return rows, whole, os.path.getsize(place), tuples, levels


def _level(field: TargetField) -> str:
    return str(PartitionField(field.column, field.transform))


def _bytes_read(connection: duckdb.DuckDBPyConnection, source: str, rows: int, whole: int) -> int:
    """The share of the file that the sampled rows stand for."""
    total = _count(connection, f"SELECT count(*) FROM {source}")
    return max(1, whole * rows // max(total, 1))


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    found = connection.execute(query).fetchone()
    return int(found[0]) if found else 0
