"""From a table's schemas to the columns that its files are read with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from relayout.kernels.group_read import LAST_UPDATED, LAST_UPDATED_FIELD, ROW_ID, ROW_ID_FIELD, GroupColumns
from relayout.kernels.parquet_shapes import WantedColumn
from relayout.kernels.write import Target
from relayout.table.types import duckdb_type, plain, sql_literal, text_of

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import IcebergType, NestedField

KERNEL_TYPES = frozenset(
    (
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "string",
        "uuid",
        "binary",
    )
)
"""Primitive types that read and write alike in DuckDB and Iceberg; `decimal` is one, too."""


def group_columns(table: Table) -> GroupColumns:
    """The columns of the current schema, and those of older ones that equality deletes may still name."""
    wanted = tuple(_column(field) for field in table.schema().fields)
    by_id = {column.field_id: column for column in _older(table.metadata.schemas)}
    by_id |= {column.field_id: column for column in wanted}
    mapping = table.name_mapping()
    names = {name: field.field_id for field in mapping.root for name in field.names} if mapping else {}
    known = {name: field_id for name, field_id in names.items() if field_id is not None}
    return GroupColumns(wanted, by_id, known, lineage=table.metadata.format_version >= 3)


def _older(schemas: Iterable[Schema]) -> Iterable[WantedColumn]:
    for schema in sorted(schemas, key=lambda schema: schema.schema_id):
        for field in schema.fields:
            if not unsupported_types(field.field_type):
                yield _column(field)


def unsupported_types(kind: IcebergType) -> set[str]:
    """Names of the primitive types in it that only Spark reads and writes as Iceberg means them."""
    from pyiceberg.types import ListType, MapType, StructType

    match kind:
        case StructType():
            return {name for field in kind.fields for name in unsupported_types(field.field_type)}
        case ListType():
            return unsupported_types(kind.element_type)
        case MapType():
            return unsupported_types(kind.key_type) | unsupported_types(kind.value_type)
    name = str(kind).partition("(")[0].partition("[")[0]
    return set() if name in KERNEL_TYPES or name == "decimal" else {name}


def _column(field: NestedField) -> WantedColumn:
    from pyiceberg.types import ListType, MapType, StructType

    kind, type_text = field.field_type, text_of(field.field_type)
    default = ""
    if field.initial_default is not None and kind.is_primitive:
        default = sql_literal(plain(field.initial_default, type_text), type_text, "duckdb")
    parts: tuple[WantedColumn, ...] = ()
    shape = "leaf"
    match kind:
        case StructType():
            shape, parts = "struct", tuple(_column(part) for part in kind.fields)
        case ListType():
            shape, parts = "list", (_column(kind.element_field),)
        case MapType():
            shape, parts = "map", (_column(kind.key_field), _column(kind.value_field))
    return WantedColumn(field.name, field.field_id, duckdb_type(type_text), shape, parts, default)


def with_lineage(target: Target) -> Target:
    """A target whose files also hold each row's id and the age of its last change, as format version 3 wants them."""
    ids = target.field_ids.removesuffix("}")
    ids += f", {ROW_ID}: {ROW_ID_FIELD}, {LAST_UPDATED}: {LAST_UPDATED_FIELD}}}"
    columns = (*target.columns, (ROW_ID, "long"), (LAST_UPDATED, "long"))
    return replace(target, columns=columns, field_ids=ids)


def identity_constants(
    table: Table, partition: Iterable[object], spec_id: int, types: Mapping[int, str]
) -> tuple[tuple[int, str], ...]:
    """What the partition of a file says of whole columns, as DuckDB text by field id; `types` are the table's own."""
    told = []
    for field, value in zip(table.specs()[spec_id].fields, partition, strict=True):
        if str(field.transform) == "identity" and field.source_id in types:
            kind = types[field.source_id]
            told.append((field.source_id, sql_literal(plain(value, kind), kind, "duckdb")))
    return tuple(told)
