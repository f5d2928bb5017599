"""Whether a data file holds what its manifest says: rows, partition values recomputed, bounds, null counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.kernels.group_read import GroupColumns, column_in
from relayout.kernels.parquet_shapes import Shape, WantedColumn, mismatch
from relayout.kernels.write import TargetField, transformed
from relayout.table.batches import Scalar
from relayout.table.duckdb_text import path_literal
from relayout.table.names import quote_duckdb
from relayout.table.scalars import plain, sql_literal

if TYPE_CHECKING:
    import duckdb

FLOATING = ("FLOAT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class ToldColumn:
    """What a manifest says of a column: its bounds as DuckDB text, empty where there are none, and its nulls."""

    column: WantedColumn
    lower: str
    upper: str
    nulls: int | None


@dataclass(frozen=True, slots=True)
class ToldFile:
    """What a manifest says of a data file; `partition` holds a plain value for each field of its spec."""

    path: str
    rows: int
    fields: tuple[TargetField, ...]
    partition: tuple[Scalar, ...]
    columns: tuple[ToldColumn, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` is `rows`, `partition`, `bounds` or `nulls`; `name` is the column or field."""

    what: str
    name: str
    text: str


def differences(
    connection: duckdb.DuckDBPyConnection, local: str, told: ToldFile, shape: Shape, columns: GroupColumns
) -> list[Difference]:
    """Everything in which the file is not what is told of it; what it does not hold is told by nobody else."""
    names = {
        column.column.name: found.name
        for column in told.columns
        if (found := column_in(shape, columns, column.column.field_id)) and not mismatch(column.column, found)
    }
    held = [column for column in told.columns if column.column.name in names]
    aliases = [
        f"CAST({quote_duckdb(names[column.column.name])} AS {column.column.type}) AS {quote_duckdb(column.column.name)}"
        for column in held
    ]
    file = f"read_parquet({path_literal(local)}, hive_partitioning = false)"
    source = f"(SELECT {', '.join([*aliases, '1 AS __one'])} FROM {file})"
    items = ["count(*)"]
    for column in held:
        items += [_outside(column), f"count(*) FILTER (WHERE {quote_duckdb(column.column.name)} IS NULL)"]
    fields = [
        (field, value)
        for field, value in zip(told.fields, told.partition, strict=True)
        if field.transform != "void" and field.column in names
    ]
    for field, value in fields:
        literal = sql_literal(plain(value, field.result_type), field.result_type, "duckdb")
        items.append(f"count(*) FILTER (WHERE {transformed(connection, field)} IS DISTINCT FROM {literal})")
    counts = connection.execute(f"SELECT {', '.join(items)} FROM {source}").fetchone() or ()
    return list(_judged(told, held, fields, [int(count) for count in counts]))


def _outside(column: ToldColumn) -> str:
    """How many values lie outside of the bounds; NaN is in no bounds."""
    name = quote_duckdb(column.column.name)
    tests = [f"{name} < {column.lower}"] if column.lower else []
    tests += [f"{name} > {column.upper}"] if column.upper else []
    number = f"NOT isnan({name}) AND " if column.column.type in FLOATING else ""
    return f"count(*) FILTER (WHERE {number}({' OR '.join(tests) or 'false'}))"


def _judged(
    told: ToldFile,
    held: Sequence[ToldColumn],
    fields: Sequence[tuple[TargetField, Scalar]],
    counts: Sequence[int],
) -> list[Difference]:
    rows, rest = counts[0], list(counts[1:])
    found = [] if rows == told.rows else [Difference("rows", "", f"holds {rows} rows, its manifest says {told.rows}")]
    for column in held:
        outside, nulls = rest.pop(0), rest.pop(0)
        name = column.column.name
        if outside:
            found.append(Difference("bounds", name, f"{outside} values of {name} lie outside of its bounds"))
        if column.nulls is not None and nulls != column.nulls:
            found.append(Difference("nulls", name, f"{name} has {nulls} nulls, its manifest says {column.nulls}"))
    for (field, value), wrong in zip(fields, rest, strict=True):
        if wrong:
            found.append(Difference("partition", field.name, f"{wrong} rows are not of {field.name}={value}"))
    return found
