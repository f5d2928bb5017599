"""What a table holds, in one comparable value; read by an engine that neither side committed with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb
from pyiceberg.table import Table

from bench.income import Income

Checksum = tuple[int, int]
"""Rows, and the sum of all rows' hashes, which no order and no division into files changes."""


def of_table(table: Table, columns: Sequence[str]) -> Checksum:
    """The current snapshot's rows; tables that were only loaded have no deletes."""
    tasks = list(table.scan().plan_files())
    assert not any(task.delete_files for task in tasks)
    return of_files((task.file.file_path.removeprefix("file:") for task in tasks), columns)


def of_files(paths: Iterable[str], columns: Sequence[str]) -> Checksum:
    with duckdb.connect() as connection:
        connection.execute("SET VARIABLE paths = ?", [sorted(paths)])
        return _of_rows(connection, "read_parquet(getvariable('paths'), hive_partitioning = false)", columns)


def of_sources(source: Income, columns: Sequence[str]) -> Checksum:
    """What a table holds that all of the source was loaded into."""
    with duckdb.connect() as connection:
        parts = [_of_rows(connection, f"({rows})", columns) for rows in source.selections()]
    return sum(rows for rows, _ in parts), sum(hashes for _, hashes in parts)


def _of_rows(connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str]) -> Checksum:
    row = connection.execute(
        f"SELECT count(*), sum(CAST(hash({', '.join(columns)}) AS HUGEINT)) FROM {relation}"
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
