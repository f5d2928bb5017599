"""Which rows the deletes of a group take away: positions of each data file, and keys with the age they reach."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.kernels.deletes import VECTOR_MAGIC
from relayout.kernels.parquet_shapes import Shape, WantedColumn, by_shape, mismatch, shapes_of
from relayout.table.duckdb_text import path_literal
from relayout.table.names import quote_duckdb
from relayout.table.rewrites import GroupFiles, PlannedDelete, PlannedFile

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import pyarrow as pa

FLOATING = ("FLOAT", "DOUBLE")


class CannotRewrite(Exception):
    """This kernel does not do that; Spark's own reader does."""


@dataclass(frozen=True, slots=True)
class Keys:
    """A table of deleted keys: `field_ids` are its columns `k0, k1, …`, and `reach` is the age that they delete."""

    table: str
    field_ids: tuple[int, ...]


def is_vector(delete: Mapping[str, Any]) -> bool:
    return str(delete["file-format"]) == "puffin"


def positions_of(
    connection: duckdb.DuckDBPyConnection, files: GroupFiles, local_of: Mapping[str, str]
) -> pa.Table | None:
    """Distinct deleted positions: `file`, its place in the group, and `pos`; None when nothing deletes by position."""
    import pyarrow as pa

    vectors: list[pa.Table] = []
    parquet: dict[int, PlannedDelete] = {}
    for place, file in enumerate(files.data):
        for index in file.deletes:
            delete = files.deletes[index]
            if delete.content["content"] != "position-deletes":
                continue
            if is_vector(delete.content):
                gone = read_vector(local_of[delete.path], delete.content)
                vectors.append(pa.table({"file": pa.repeat(pa.scalar(place, pa.int32()), len(gone)), "pos": gone}))
            else:
                parquet[index] = delete
    found = [pa.concat_tables(vectors)] if vectors else []
    if parquet:
        found.append(_positions_in_parquet(connection, files, tuple(parquet.values()), local_of))
    return pa.concat_tables(found) if found else None


def _positions_in_parquet(
    connection: duckdb.DuckDBPyConnection,
    files: GroupFiles,
    deletes: Sequence[PlannedDelete],
    local_of: Mapping[str, str],
) -> pa.Table:
    """A delete file names data files as the table does, and takes nothing from files younger than itself."""
    import pyarrow as pa

    for delete in deletes:
        _require_parquet(delete)
    ages = [file.data_sequence_number for file in files.data]
    known = pa.table({"path": [file.path for file in files.data], "file": pa.array(range(len(ages)), pa.int32())})
    known = known.append_column("age", pa.array(ages, pa.int64()))
    reach = pa.table(
        {
            "place": pa.array(range(len(deletes)), pa.int64()),
            "reach": pa.array([delete.data_sequence_number for delete in deletes], pa.int64()),
        }
    )
    listed = ", ".join(path_literal(local_of[delete.path]) for delete in deletes)
    connection.register("known_files", known)
    connection.register("known_reach", reach)
    found = connection.sql(
        "SELECT DISTINCT k.file, CAST(d.pos AS BIGINT) AS pos FROM"
        f" read_parquet([{listed}], hive_partitioning = false, union_by_name = true) AS d"
        " JOIN known_files AS k ON k.path = d.file_path"
        " JOIN known_reach AS r ON r.place = d.file_index WHERE r.reach >= k.age"
    ).to_arrow_table()
    connection.unregister("known_files")
    connection.unregister("known_reach")
    return found


def read_vector(local: str, delete: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Positions in a deletion vector, its magic and checksum tested."""
    import numpy as np
    from pyroaring import BitMap

    with Path(local).open("rb") as puffin:
        puffin.seek(int(delete["content-offset"]))
        blob = puffin.read(int(delete["content-size-in-bytes"]))
    data = blob[4:-4]
    if struct.unpack("<I", data[:4])[0] != VECTOR_MAGIC or struct.unpack(">I", blob[-4:])[0] != zlib.crc32(data):
        raise ValueError(f"the deletion vector at {delete['content-offset']} of {delete['file-path']} is damaged")
    bitmaps = struct.unpack_from("<q", data, 4)[0]
    offset, found = 12, []
    for _ in range(bitmaps):
        (key,) = struct.unpack_from("<I", data, offset)
        bits = BitMap.deserialize(data[offset + 4 :])
        offset += 4 + len(bits.serialize())
        found.append(np.array(bits, dtype=np.int64) + (key << 32))
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def keys_of(
    connection: duckdb.DuckDBPyConnection,
    deletes: Sequence[PlannedDelete],
    wanted: Mapping[int, WantedColumn],
    local_of: Mapping[str, str],
    prefix: str,
) -> Iterator[Keys]:
    """One table per set of key columns; a key stands there once, with the greatest age that a file gives it."""
    by_ids: dict[tuple[int, ...], list[PlannedDelete]] = {}
    for delete in deletes:
        by_ids.setdefault(tuple(sorted(delete.content["equality-ids"])), []).append(delete)
    for number, (ids, members) in enumerate(by_ids.items()):
        for field_id in ids:
            column = wanted.get(field_id)
            if column is None or column.kind != "leaf" or column.type in FLOATING:
                # Iceberg tells zeros and NaN apart by their bits, and a part of a struct by its path.
                raise CannotRewrite(f"equality deletes by field {field_id} are matched by Spark")
        table = f"{prefix}_{number}"
        columns = ", ".join(f"k{place}" for place in range(len(ids)))
        selects = _key_selects(connection, members, [wanted[field_id] for field_id in ids], local_of)
        connection.execute(
            f"CREATE TEMP TABLE {table} AS SELECT {columns}, max(reach) AS reach"
            f" FROM ({' UNION ALL '.join(selects)}) GROUP BY {columns}"
        )
        yield Keys(table, ids)


def _key_selects(
    connection: duckdb.DuckDBPyConnection,
    deletes: Sequence[PlannedDelete],
    columns: Sequence[WantedColumn],
    local_of: Mapping[str, str],
) -> Iterator[str]:
    for delete in deletes:
        _require_parquet(delete)
    paths = [local_of[delete.path] for delete in deletes]
    for shape, places in by_shape(paths, shapes_of(connection, paths)).items():
        items = [f"{_key_expression(shape, column)} AS k{number}" for number, column in enumerate(columns)]
        reach = ", ".join(str(deletes[place].data_sequence_number) for place in places)
        listed = ", ".join(path_literal(paths[place]) for place in places)
        yield (
            f"SELECT {', '.join(items)}, [{reach}][CAST(file_index AS BIGINT) + 1] AS reach"
            f" FROM read_parquet([{listed}], hive_partitioning = false)"
        )


def _key_expression(shape: Shape, column: WantedColumn) -> str:
    found = next((item for item in shape.columns if item.field_id == column.field_id), None)
    if found is None or not shape.names_are_distinct():
        raise CannotRewrite(f"an equality delete file lacks its column {column.name}")
    if why := mismatch(column, found):
        raise CannotRewrite(why)
    return f"CAST({quote_duckdb(found.name)} AS {column.type})"


def _require_parquet(delete: PlannedDelete) -> None:
    if delete.content["file-format"] != "parquet":
        raise CannotRewrite(f"delete files in {delete.content['file-format']} are read by Spark")


def equality_deletes(files: GroupFiles, data: Sequence[PlannedFile]) -> tuple[int, ...]:
    """Places of the equality deletes that apply to any of these data files, which share spec and partition."""
    return tuple(
        sorted(
            {
                index
                for file in data
                for index in file.deletes
                if files.deletes[index].content["content"] == "equality-deletes"
            }
        )
    )
