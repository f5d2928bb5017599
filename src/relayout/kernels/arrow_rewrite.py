"""Small groups of plain files by PyArrow alone: for files of a few rows, starting a query costs more than the rows.

Anything out of the ordinary (deletes, an order, nested or missing columns, other types) is left to the general way.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.kernels.group_read import GroupColumns
from relayout.kernels.metrics import file_metrics
from relayout.kernels.proof import Before, NotProven
from relayout.kernels.write import OutputFile, Target, publish
from relayout.table.batches import BatchKey
from relayout.table.names import quote_duckdb
from relayout.table.rewrites import GroupFiles, PlannedFile
from relayout.table.types import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MOST_BYTES = 16 << 20
"""Groups above this size are read and written as streams."""

SHARE_OF_MEMORY = 32
"""Compressed bytes of a group may be this part of a task's memory; decoded they are several times as many."""

_TYPES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "timestamp",
    "timestamptz",
    "string",
    "binary",
    "decimal",
)
_FIELD_ID = b"PARQUET:field_id"


def is_small(files: GroupFiles, target: Target, columns: GroupColumns, memory_bytes: int) -> bool:
    """Whether a group is one for this way, as far as its plan tells."""
    size = sum(file.size_bytes for file in files.data)
    return (
        not files.deletes
        and not target.order_by
        and target.partition is not None
        and not columns.lineage
        and size <= min(MOST_BYTES, memory_bytes // SHARE_OF_MEMORY, target.target_file_bytes)
        and all(kind.partition("(")[0] in _TYPES for _, kind in target.columns)
        and target.codec in ("zstd", "snappy", "gzip")
        and all(file.content["file-format"] == "parquet" for file in files.data)
    )


def rewritten_with_arrow(
    files: GroupFiles, target: Target, columns: GroupColumns, local_of: Mapping[str, str]
) -> tuple[list[OutputFile], Before] | None:
    """The new file and what must be in it, or None where the files turn out to need the general way."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            pa.field(name, arrow_type(kind), metadata={_FIELD_ID: str(column.field_id).encode()})
            for (name, kind), column in zip(target.columns, columns.wanted, strict=True)
        ]
    )
    tables: list[pa.Table] = []
    nulls: dict[int, int] = {column.field_id: 0 for column in columns.wanted}
    for file in files.data:
        with pq.ParquetFile(local_of[file.path]) as opened:
            names = _names(opened, file, schema, columns)
            if names is None:
                return None
            _count_nulls(opened.metadata, names, columns, nulls)
            table = opened.read(columns=names, use_threads=False).select(names).rename_columns(schema.names)
        tables.append(table.cast(schema))
    whole = pa.concat_tables(tables)
    content = _written(whole, target)
    outputs = publish([(BatchKey.of([], []), content)], target) if whole.num_rows else []
    return outputs, Before(sum(file.rows for file in files.data), 0, nulls)


def _names(opened: pq.ParquetFile, file: PlannedFile, schema: pa.Schema, columns: GroupColumns) -> list[str] | None:
    """The file's names of the table's columns, None where it lacks one or holds it in another type."""
    if opened.metadata.num_rows != file.rows:
        raise NotProven(f"{file.path} holds {opened.metadata.num_rows} rows, its manifest says {file.rows}")
    held = opened.schema_arrow
    by_id: dict[int, pa.Field] = {}
    for field in held:
        told = (field.metadata or {}).get(_FIELD_ID)
        field_id = int(told) if told is not None else None
        if field_id is None and not any((other.metadata or {}).get(_FIELD_ID) for other in held):
            field_id = columns.name_mapping.get(field.name)
        if field_id is not None:
            by_id[field_id] = field
    names = []
    for column, wanted in zip(columns.wanted, schema, strict=True):
        found = by_id.get(column.field_id)
        if (
            found is None
            or "." in found.name
            or held.get_all_field_indices(found.name) != [held.names.index(found.name)]
        ):
            return None
        if found.type != wanted.type:
            return None
        names.append(found.name)
    return names


def _count_nulls(footer: pq.FileMetaData, names: Sequence[str], columns: GroupColumns, nulls: dict[int, int]) -> None:
    """Add the nulls that the footer counts; a column that it does not count is not counted at all any more."""
    ids = dict(zip(names, (column.field_id for column in columns.wanted), strict=True))
    for chunk in _chunks(footer):
        field_id = ids.get(chunk.path_in_schema)
        if field_id is None or field_id not in nulls:
            continue
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            del nulls[field_id]
        else:
            nulls[field_id] += statistics.null_count


def _chunks(footer: pq.FileMetaData) -> Iterator[Any]:
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for place in range(row_group.num_columns):
            yield row_group.column(place)


def _written(table: pa.Table, target: Target) -> dict[str, Any]:
    import pyarrow.parquet as pq

    path = Path(target.scratch) / f"{uuid.uuid4()}.parquet"
    footers: list[Any] = []
    pq.write_table(table, path, compression=target.codec, store_decimal_as_integer=True, metadata_collector=footers)
    return {
        "spec-id": target.spec_id,
        "content": "data",
        "file-path": str(path),
        "file-format": "parquet",
        "partition": list(target.partition or ()),
        "file-size-in-bytes": path.stat().st_size,
        "record-count": table.num_rows,
        **file_metrics(_statistics(footers[0]), target.leaves),
    }


def _statistics(footer: Any) -> dict[str, dict[str, str]]:
    """What the footer tells of each column, in the words that DuckDB uses for it."""
    found: dict[str, dict[str, Any]] = {}
    for chunk in _chunks(footer):
        told = found.setdefault(
            quote_duckdb(chunk.path_in_schema), {"size": 0, "values": 0, "nulls": 0, "ends": [], "exact": True}
        )
        statistics = chunk.statistics
        told["size"] += chunk.total_compressed_size
        told["values"] += chunk.num_values
        if statistics is None or not statistics.has_null_count:
            told["exact"] = False
            continue
        told["nulls"] += statistics.null_count
        if statistics.has_min_max:
            told["ends"] += [statistics.min, statistics.max]
        elif statistics.null_count < chunk.num_values:
            told["exact"] = False
    return {name: _words(told) for name, told in found.items()}


def _words(told: Mapping[str, Any]) -> dict[str, str]:
    words = {"column_size_bytes": str(told["size"]), "num_values": str(told["values"])}
    if not told["exact"]:
        return words
    words["null_count"] = str(told["nulls"])
    texts = [_text(min(told["ends"])), _text(max(told["ends"]))] if told["ends"] else []
    if texts and (all(texts) or isinstance(told["ends"][0], str | bytes)):
        words |= {"min": texts[0], "max": texts[1], "min_is_exact": "true", "max_is_exact": "true"}
    return words


def _text(value: object) -> str:
    """A value as DuckDB writes it; empty for one that has no such text."""
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.hex()
        case int() | Decimal() | str():
            return str(value)
        case float():
            return repr(value)
        case date() | datetime() | time():
            return value.isoformat()
    return ""
