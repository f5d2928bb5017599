"""The live rows of one group as a DuckDB relation: columns by field id, deletes applied, row lineage kept.

Files are read in buckets: those of one shape whose missing columns have the same values and whose rows the same
deletes by key can reach. What a cast cannot express raises CannotRewrite before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.kernels.delete_read import CannotRewrite, Keys, equality_deletes, keys_of, positions_of
from relayout.kernels.parquet_shapes import FileColumn, Shape, WantedColumn, mismatch
from relayout.table.duckdb_text import path_literal
from relayout.table.names import quote_duckdb
from relayout.table.rewrites import GroupFiles, PlannedFile

if TYPE_CHECKING:
    import duckdb

ROW_ID, ROW_ID_FIELD = "_row_id", 2147483540
LAST_UPDATED, LAST_UPDATED_FIELD = "_last_updated_sequence_number", 2147483539


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """How the rows of a table are read.

    `wanted` are the table's columns, `deleted_by` also those that only equality deletes still name; `name_mapping`
    gives field ids to columns of files without any. `constants` is DuckDB text by spec and field id, for each place
    in the partition of a file: an identity field tells the value of a column that its files need not hold.
    """

    wanted: tuple[WantedColumn, ...]
    deleted_by: Mapping[int, WantedColumn]
    name_mapping: Mapping[str, int]
    lineage: bool


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A data file of the group with what its task knows of it: a local path, its shape, what its partition tells."""

    place: int
    planned: PlannedFile
    local: str
    shape: Shape
    constants: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """FROM items with the rows to keep and the rows that deletes take; `deletes` says whether any could."""

    kept: str
    lost: str
    deletes: bool


def relation_of(
    connection: duckdb.DuckDBPyConnection,
    files: GroupFiles,
    read: Sequence[ReadFile],
    columns: GroupColumns,
    local_of: Mapping[str, str],
) -> Relation:
    """Prepare what the deletes say in temporary tables and describe the group's rows."""
    gone = positions_of(connection, files, local_of)
    if gone is not None:
        connection.register("gone_positions", gone)
        connection.execute("CREATE OR REPLACE TEMP TABLE gone AS SELECT DISTINCT file, pos FROM gone_positions")
        connection.unregister("gone_positions")
    keys: dict[tuple[int, ...], tuple[Keys, ...]] = {(): ()}
    selects = []
    for bucket, reach in _buckets(files, read, columns):
        if reach not in keys:
            deletes = [files.deletes[index] for index in reach]
            keys[reach] = tuple(keys_of(connection, deletes, columns.deleted_by, local_of, f"keys_{len(keys)}"))
        selects.append(_Bucket(bucket, columns, keys[reach], gone is not None).select())
    rows = " UNION ALL ".join(selects)
    names = ", ".join(quote_duckdb(name) for name in output_names(columns))
    if gone is None and len(keys) == 1:
        return Relation(f"(SELECT {names} FROM ({rows}))", "", deletes=False)
    return Relation(
        f"(SELECT {names} FROM ({rows}) WHERE NOT __gone)", f"(SELECT {names} FROM ({rows}) WHERE __gone)", deletes=True
    )


def output_names(columns: GroupColumns) -> list[str]:
    names = [column.name for column in columns.wanted]
    return [*names, ROW_ID, LAST_UPDATED] if columns.lineage else names


def _buckets(
    files: GroupFiles, read: Sequence[ReadFile], columns: GroupColumns
) -> list[tuple[list[ReadFile], tuple[int, ...]]]:
    """Files that one SELECT reads, with the equality deletes that reach any of them."""
    scopes: dict[str, list[PlannedFile]] = {}
    for file in read:
        scopes.setdefault(_scope(file.planned), []).append(file.planned)
    reach = {scope: equality_deletes(files, members) for scope, members in scopes.items()}
    buckets: dict[tuple[object, ...], tuple[list[ReadFile], tuple[int, ...]]] = {}
    for file in read:
        here = {field_id for field_id, _ in file.constants if column_in(file.shape, columns, field_id) is None}
        told = tuple(constant for constant in file.constants if constant[0] in here)
        by_key = reach[_scope(file.planned)]
        buckets.setdefault((file.shape, told, by_key), ([], by_key))[0].append(file)
    return list(buckets.values())


def _scope(file: PlannedFile) -> str:
    return f"{file.content['spec-id']} {file.content['partition']!r}"


def column_in(shape: Shape, columns: GroupColumns, field_id: int) -> FileColumn | None:
    """The file's column of this id; files without ids are read by the table's name mapping."""
    if shape.has_field_ids:
        return next((column for column in shape.columns if column.field_id == field_id), None)
    return next((column for column in shape.columns if columns.name_mapping.get(column.name) == field_id), None)


class _Bucket:
    """One SELECT over files of one shape."""

    def __init__(self, files: Sequence[ReadFile], columns: GroupColumns, keys: Sequence[Keys], positions: bool) -> None:
        self.files = files
        self.columns = columns
        self.keys = keys
        self.positions = positions
        self.shape = files[0].shape
        self.constants = dict(files[0].constants)
        if not self.shape.names_are_distinct():
            raise CannotRewrite("names of columns differ in case only")
        if not self.shape.has_field_ids and not columns.name_mapping:
            raise CannotRewrite("files without field ids and the table has no name mapping")
        if any(column.name.lower() in ("file_row_number", "file_index") for column in self.shape.columns):
            raise CannotRewrite("a column has a name that the reader needs itself")

    def select(self) -> str:
        items = [f"{self._value(column)} AS {quote_duckdb(column.name)}" for column in self.columns.wanted]
        if self.columns.lineage:
            items += self._lineage()
        listed = ", ".join(path_literal(file.local) for file in self.files)
        source = f"read_parquet([{listed}], hive_partitioning = false) AS r"
        gone = []
        if self.positions:
            places = self._per_file([str(file.place) for file in self.files])
            source += f" LEFT JOIN gone AS g ON g.file = {places} AND g.pos = r.file_row_number"
            gone.append("g.file IS NOT NULL")
        age = self._per_file([str(file.planned.data_sequence_number) for file in self.files])
        for number, key in enumerate(self.keys):
            match = " AND ".join(
                f"e{number}.k{place} IS NOT DISTINCT FROM {self._value(self.columns.deleted_by[field_id])}"
                for place, field_id in enumerate(key.field_ids)
            )
            source += f" LEFT JOIN {key.table} AS e{number} ON {match}"
            gone.append(f"coalesce(e{number}.reach > {age}, false)")
        items.append(f"{' OR '.join(gone) or 'false'} AS __gone")
        return f"SELECT {', '.join(items)} FROM {source}"

    def _per_file(self, values: Sequence[str]) -> str:
        """A value of each row's file."""
        if len(set(values)) == 1:
            return f"CAST({values[0]} AS BIGINT)"
        return f"(CAST([{', '.join(values)}] AS BIGINT[]))[CAST(r.file_index AS BIGINT) + 1]"

    def _value(self, column: WantedColumn) -> str:
        found = column_in(self.shape, self.columns, column.field_id)
        if found is None:
            text = self.constants.get(column.field_id) or column.default or "NULL"
            return f"CAST({text} AS {column.type})"
        if not self.shape.has_field_ids and column.kind != "leaf":
            raise CannotRewrite(f"{column.name} has parts and its files have no field ids")
        if why := mismatch(column, found):
            raise CannotRewrite(why)
        return f"CAST(r.{quote_duckdb(found.name)} AS {column.type})"

    def _lineage(self) -> list[str]:
        """A row keeps the id and the age that it has; what its file does not hold follows from the file."""
        first = self._per_file([_or_null(file.planned.first_row_id) for file in self.files])
        age = self._per_file(
            [
                "NULL" if file.planned.first_row_id is None else str(file.planned.data_sequence_number)
                for file in self.files
            ]
        )
        row_id = column_in(self.shape, self.columns, ROW_ID_FIELD)
        updated = column_in(self.shape, self.columns, LAST_UPDATED_FIELD)
        told_id = f"r.{quote_duckdb(row_id.name)}, " if row_id else ""
        told_age = f"r.{quote_duckdb(updated.name)}, " if updated else ""
        return [
            f"coalesce({told_id}{first} + r.file_row_number) AS {ROW_ID}",
            f"coalesce({told_age}{age}) AS {LAST_UPDATED}",
        ]


def _or_null(number: int | None) -> str:
    return "NULL" if number is None else str(number)
