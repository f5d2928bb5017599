"""A table of very many files that exist in its metadata only: real manifests, written by PyIceberg and multiplied."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.places import BUILD

GENERATION = 1
"""Part of the folder's name; raised when what is written changes."""

COLUMNS = 10
DAYS = 1_000
FIRST_DAY = 19_000
"""Days from here on have the same length as variable-length numbers, so that entries can be told from a template."""

PER_MANIFEST = 10_000
_PER_BLOCK = 100
_SYNC_BYTES = 16
_NAME, _TABLE = "lake", "db.t"


@dataclass(frozen=True, slots=True)
class ManyFiles:
    """So many small files over a thousand days, each with statistics of ten columns."""

    files: int

    @property
    def folder(self) -> Path:
        return BUILD / "data" / f"manifests-{GENERATION}-{self.files}"

    def catalog(self) -> dict[str, str]:
        """Properties of the catalog that holds the table, for PyIceberg."""
        return {"uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": str(self.folder)}

    def table(self) -> Any:
        """The table; made now unless it is there."""
        from pyiceberg.catalog.sql import SqlCatalog

        if not (self.folder / "complete").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._make(SqlCatalog(_NAME, **self.catalog()))
            (self.folder / "complete").touch()
        return SqlCatalog(_NAME, **self.catalog()).load_table(_TABLE)

    def _make(self, catalog: Any) -> None:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.table.update.snapshot import Operation, _FastAppendFiles
        from pyiceberg.transforms import DayTransform
        from pyiceberg.types import LongType, NestedField, TimestampType

        columns = [NestedField(1, "ts", TimestampType(), required=False)]
        columns += [NestedField(2 + n, f"v{n}", LongType(), required=False) for n in range(COLUMNS - 1)]
        catalog.create_namespace_if_not_exists("db")
        spec = PartitionSpec(PartitionField(1, 1000, DayTransform(), "day"))
        table = catalog.create_table(_TABLE, Schema(*columns), partition_spec=spec)

        class Prepared(_FastAppendFiles):
            """An append of manifests that are written already."""

            def _manifests(inner) -> list[Any]:  # noqa: N805
                return list(self._manifests(table, inner.snapshot_id))

        with table.transaction() as transaction:
            append = Prepared(Operation.APPEND, transaction, table.io)
            append.commit()

    def _manifests(self, table: Any, snapshot_id: int) -> Iterator[Any]:
        head, entry, told = _template(table, snapshot_id)
        for number in range(self.files // PER_MANIFEST):
            path = f"{self.folder}/db/t/metadata/prepared-{number}.avro"
            size = _write(Path(path), head, entry, range(number * PER_MANIFEST, (number + 1) * PER_MANIFEST))
            yield told(path, size)


def _template(table: Any, snapshot_id: int) -> tuple[bytes, bytes, Any]:
    """A manifest's header, one entry of it, and a way to describe a manifest of many such entries."""
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestFile,
        PartitionFieldSummary,
        write_manifest,
    )
    from pyiceberg.typedef import Record

    ids = range(1, COLUMNS + 1)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=_path(table.location(), 0),
        file_format=FileFormat.PARQUET,
        partition=Record(FIRST_DAY),
        record_count=1_000,
        file_size_in_bytes=40_000,
        column_sizes=dict.fromkeys(ids, 4_000),
        value_counts=dict.fromkeys(ids, 1_000),
        null_value_counts=dict.fromkeys(ids, 0),
        nan_value_counts={},
        lower_bounds=dict.fromkeys(ids, struct.pack("<q", 1)),
        upper_bounds=dict.fromkeys(ids, struct.pack("<q", 1 << 40)),
        key_metadata=None,
        split_offsets=[4],
        equality_ids=None,
        sort_order_id=0,
    )
    path = f"{table.location()}/metadata/template.avro"
    output = table.io.new_output(path)
    with write_manifest(2, table.spec(), table.schema(), output, snapshot_id, "deflate") as writer:
        writer.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=file))
    written = Path(path.removeprefix("file://")).read_bytes()
    sync = written[-_SYNC_BYTES:]
    head = written[: written.index(sync) + _SYNC_BYTES]
    block = written[len(head) : -_SYNC_BYTES]
    # Behind two numbers of the block, its count and its size, stands the one entry.
    entry = zlib.decompress(block[1 + len(_number(len(block) - 3)) :], wbits=-zlib.MAX_WBITS)

    def told(path: str, size: int) -> Any:
        bounds = [struct.pack("<i", day) for day in (FIRST_DAY, FIRST_DAY + DAYS - 1)]
        return ManifestFile.from_args(
            manifest_path=path,
            manifest_length=size,
            partition_spec_id=0,
            content=ManifestContent.DATA,
            sequence_number=1,
            min_sequence_number=1,
            added_snapshot_id=snapshot_id,
            added_files_count=PER_MANIFEST,
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=PER_MANIFEST * 1_000,
            existing_rows_count=0,
            deleted_rows_count=0,
            partitions=[PartitionFieldSummary(False, False, *bounds)],
        )

    return head, entry, told


def _path(location: str, number: int) -> str:
    day = FIRST_DAY + number % DAYS
    return f"{location}/data/day={day}/{number:09d}-3b0c8f0e-5d0f-4e6f-9d1b-6a2f5b1c7d8e-00001.parquet"


def _number(value: int) -> bytes:
    zigzag, out = value << 1, b""
    while zigzag >= 0x80:
        out += bytes([zigzag & 0x7F | 0x80])
        zigzag >>= 7
    return out + bytes([zigzag])


def _write(path: Path, head: bytes, entry: bytes, numbers: range) -> int:
    sync = head[-_SYNC_BYTES:]
    day_at = entry.index(b"day=") + len(b"day=")
    partition_at = entry.index(b"PARQUET") + len(b"PARQUET") + 1
    width = len(_number(FIRST_DAY))
    before, between, after = (
        entry[:day_at],
        entry[day_at + 15 : partition_at],
        entry[partition_at + width :],
    )
    out = io.BytesIO()
    out.write(head)
    for start in range(numbers.start, numbers.stop, _PER_BLOCK):
        entries = [
            b"%b%d/%09d%b%b%b"
            % (before, FIRST_DAY + number % DAYS, number, between, _number(FIRST_DAY + number % DAYS), after)
            for number in range(start, min(start + _PER_BLOCK, numbers.stop))
        ]
        packed = zlib.compress(b"".join(entries), 6, wbits=-zlib.MAX_WBITS)
        out.write(_number(len(entries)) + _number(len(packed)) + packed + sync)
    path.write_bytes(out.getvalue())
    return out.tell()
