"""From a table as it is to the target that kernels write for: field ids, metrics columns, partition fields, order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from relayout.errors import EngineError
from relayout.kernels.metrics import Leaf
from relayout.kernels.write import Target, TargetField
from relayout.table.facts import Spec, TableFacts
from relayout.table.layouts import SortField
from relayout.table.names import quote_duckdb
from relayout.table.types import text_of

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

MOST_COLUMNS_WITH_METRICS = 100
"""Iceberg's own default; wider tables would bloat their manifests."""

FULL_BOUNDS_PROPERTY = "write.metadata.metrics.column."
CODEC_PROPERTY = "write.parquet.compression-codec"
DEFAULT_CODEC = "zstd"
CODECS = {"zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4_raw", "brotli": "brotli"} | dict.fromkeys(
    ("uncompressed", "none"), "uncompressed"
)


def target_for(
    facts: TableFacts,
    schema: Schema,
    *,
    data_location: str,
    scratch: str,
    file_prefix: str,
    batch_columns: Sequence[tuple[str, str]],
    target_file_bytes: int,
    store: Mapping[str, str],
    spec: Spec | None = None,
) -> Target:
    """A target in the table's current schema and sort order, and in its default spec unless another one is given."""
    kinds = {column.name: column.type for column in facts.schema}
    chosen = spec or facts.spec
    fields = tuple(
        TargetField(field.name, field.column, field.transform, kinds.get(field.column, "null"))
        for field in chosen.fields
    )
    in_partition = {field.column for field in fields if field.transform == "identity"}
    full = {
        key.removeprefix(FULL_BOUNDS_PROPERTY)
        for key, mode in facts.properties.items()
        if key.startswith(FULL_BOUNDS_PROPERTY) and mode == "full"
    }
    return Target(
        data_location=data_location,
        scratch=scratch,
        file_prefix=file_prefix,
        spec_id=chosen.spec_id,
        fields=fields,
        columns=tuple((column.name, column.type) for column in facts.schema),
        field_ids=duckdb_field_ids(schema),
        leaves=tuple(metrics_leaves(schema, full)),
        order_by=tuple(_order_term(field) for field in facts.sort),
        batch_columns=tuple(batch_columns),
        named_batch_columns=tuple(name for name, _ in batch_columns if name not in in_partition),
        target_file_bytes=target_file_bytes,
        codec=_codec(facts.properties.get(CODEC_PROPERTY, DEFAULT_CODEC)),
        store=store,
    )


def duckdb_field_ids(schema: Schema) -> str:
    """The schema's field ids as DuckDB's Parquet writer takes them."""
    return "{" + ", ".join(_entry(field.name, field.field_id, field.field_type) for field in schema.fields) + "}"


def _entry(name: str, field_id: int, kind: IcebergType) -> str:
    inner = [f"__duckdb_field_id: {field_id}", *(_entry(*child) for child in _children(kind))]
    value = str(field_id) if len(inner) == 1 else "{" + ", ".join(inner) + "}"
    return f"{quote_duckdb(name)}: {value}"


def _children(kind: IcebergType) -> Iterator[tuple[str, int, IcebergType]]:
    from pyiceberg.types import ListType, MapType, StructType

    match kind:
        case StructType():
            yield from ((field.name, field.field_id, field.field_type) for field in kind.fields)
        case ListType():
            yield "element", kind.element_id, kind.element_type
        case MapType():
            yield "key", kind.key_id, kind.key_type
            yield "value", kind.value_id, kind.value_type


def metrics_leaves(schema: Schema, full_bounds: set[str]) -> Iterator[Leaf]:
    """Primitive columns outside lists and maps, the first hundred of them and those that need exact bounds."""
    from pyiceberg.types import StructType

    number = 0
    waiting: list[tuple[tuple[str, ...], int, IcebergType]] = [
        ((field.name,), field.field_id, field.field_type) for field in schema.fields
    ]
    while waiting:
        path, field_id, kind = waiting.pop(0)
        if isinstance(kind, StructType):
            waiting += [((*path, field.name), field.field_id, field.field_type) for field in kind.fields]
        elif kind.is_primitive:
            number += 1
            full = ".".join(path) in full_bounds
            if full or number <= MOST_COLUMNS_WITH_METRICS:
                yield Leaf(".".join(quote_duckdb(part) for part in path), field_id, text_of(kind), full)


def _order_term(field: SortField) -> str:
    way = "DESC" if field.descending else "ASC"
    return f"{quote_duckdb(field.column)} {way} NULLS {'FIRST' if field.nulls_first else 'LAST'}"


def _codec(name: str) -> str:
    if name.lower() not in CODECS:
        raise EngineError(
            f"files cannot be written with the codec {name!r}",
            where=f"table property {CODEC_PROPERTY}",
            next=f"set it to one of {', '.join(CODECS)}",
        )
    return CODECS[name.lower()]
