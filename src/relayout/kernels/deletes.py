"""Position deletes as Parquet (format version 2) and deletion vectors in Puffin files (format version 3).

Formats: https://iceberg.apache.org/spec/#position-delete-files and https://iceberg.apache.org/puffin-spec/.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.kernels.places import place_for
from relayout.read.manifests import FILE_PATH_FIELD_ID

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

POSITION_FIELD_ID = 2147483545
ROW_POSITION_FIELD_ID = 2147483645

VECTOR_MAGIC = 1681511377
PUFFIN_MAGIC = b"PFA1"


@dataclass(frozen=True, slots=True)
class DeleteTarget:
    """Where delete files go; `data_files` holds spec id, partition and row count of each data file by its path."""

    format_version: int
    data_location: str
    file_prefix: str
    data_files: Mapping[str, Mapping[str, Any]]
    store: Mapping[str, str]


def delete_file(positions: pa.Table, target: DeleteTarget) -> dict[str, Any]:
    """Write the deletes of one data file, given its live rows as `_file`, `_pos` and `matches`.

    A deletion vector replaces all earlier deletes of its file, so for version 3 it holds every position that is not a
    live row to keep, whatever kind of delete removed the others.
    """
    import numpy as np

    path = str(positions.column("_file")[0].as_py())
    data_file = target.data_files[path]
    places = positions.column("_pos").to_numpy()
    matches = positions.column("matches").to_numpy(zero_copy_only=False)
    if target.format_version >= 3:
        kept = np.ones(int(data_file["record-count"]), dtype=bool)
        kept[places[~matches]] = False
        gone = np.flatnonzero(kept)
        body, extra = puffin_of_one_vector(path, gone)
        name, kind = f"{target.file_prefix}-{uuid.uuid4()}-deletes.puffin", "puffin"
    else:
        gone = np.sort(places[matches])
        body, extra = _position_parquet(path, gone), _path_bounds(path)
        name, kind = f"{target.file_prefix}-{uuid.uuid4()}-deletes.parquet", "parquet"
    final = f"{target.data_location.rstrip('/')}/{name}"
    place_for(final, target.store).write(body, final)
    return {
        "spec-id": data_file["spec-id"],
        "content": "position-deletes",
        "file-path": final,
        "file-format": kind,
        "partition": data_file["partition"],
        "file-size-in-bytes": len(body),
        "record-count": len(gone),
        "referenced-data-file": path,
        **extra,
    }


def _position_parquet(path: str, positions: np.ndarray[Any, Any]) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    def identified(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
        return pa.field(name, kind, False, metadata={b"PARQUET:field_id": str(field_id).encode()})

    schema = pa.schema(
        [
            identified("file_path", pa.string(), FILE_PATH_FIELD_ID),
            identified("pos", pa.int64(), POSITION_FIELD_ID),
        ]
    )
    paths = pa.DictionaryArray.from_arrays(pa.array([0] * len(positions), pa.int32()), pa.array([path]))
    table = pa.table([paths.cast(pa.string()), pa.array(positions, pa.int64())], schema=schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _path_bounds(path: str) -> dict[str, Any]:
    """Equal whole bounds tell readers that the deletes concern this one data file."""
    bound = {"keys": [FILE_PATH_FIELD_ID], "values": [path.encode("utf-8", "surrogatepass").hex().upper()]}
    return {"lower-bounds": bound, "upper-bounds": bound}


def puffin_of_one_vector(path: str, positions: np.ndarray[Any, Any]) -> tuple[bytes, dict[str, Any]]:
    """A Puffin file with one deletion vector, and what its manifest entry must say of it."""
    vector = _vector(positions)
    offset = len(PUFFIN_MAGIC)
    footer = json.dumps(
        {
            "blobs": [
                {
                    "type": "deletion-vector-v1",
                    "fields": [ROW_POSITION_FIELD_ID],
                    "snapshot-id": -1,
                    "sequence-number": -1,
                    "offset": offset,
                    "length": len(vector),
                    "properties": {"referenced-data-file": path, "cardinality": str(len(positions))},
                }
            ],
            "properties": {"created-by": "relayout"},
        }
    ).encode()
    body = PUFFIN_MAGIC + vector + PUFFIN_MAGIC + footer
    body += struct.pack("<I", len(footer)) + b"\0\0\0\0" + PUFFIN_MAGIC
    return body, {"content-offset": offset, "content-size-in-bytes": len(vector)}


def _vector(positions: np.ndarray[Any, Any]) -> bytes:
    """Length, magic, 64-bit roaring bitmap in its portable form, checksum."""
    import numpy as np
    from pyroaring import BitMap

    high = positions.astype(np.uint64) >> np.uint64(32)
    keys = np.unique(high)
    body = struct.pack("<q", len(keys))
    for key in keys:
        bits = BitMap(positions[high == key].astype(np.uint32))
        bits.run_optimize()
        body += struct.pack("<I", int(key)) + bits.serialize()
    data = struct.pack("<I", VECTOR_MAGIC) + body
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
