"""Manifests entry by entry, with the fields of format version 3 that PyIceberg's own reader leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
"""What a file holds, as numbers: tables of version 1 do not say it, and PyIceberg then gives no enum."""

FILE_PATH_FIELD_ID = 2147483546
"""The path in a position delete file (https://iceberg.apache.org/spec/#position-delete-files)."""

_REFERENCED_DATA_FILE, _CONTENT_OFFSET, _CONTENT_SIZE = 17, 18, 19
"""Where these stand in a data file of the version 3 schema."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as a manifest tells of it; what a manifest leaves to its own header is filled in.

    `only_data_file` is the data file that all deletes of a delete file are for, or nothing.
    """

    file: DataFile
    live: bool
    existing: bool
    snapshot_id: int
    sequence_number: int
    file_sequence_number: int
    only_data_file: str
    content_offset: int | None
    content_size_in_bytes: int | None


def live_entries(manifests: Iterable[ManifestFile], io: FileIO) -> Iterator[Entry]:
    """Entries of files that are in the table."""
    return (entry for manifest in manifests for entry in entries_in(manifest, io) if entry.live)


def entries_in(manifest: ManifestFile, io: FileIO) -> Iterator[Entry]:
    """Entries one by one; PyIceberg's reader makes a list of all of them first."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import (
        MANIFEST_ENTRY_SCHEMAS,
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
    )

    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        for entry in entries:
            yield _told(entry, manifest)


def _told(entry: ManifestEntry, manifest: ManifestFile) -> Entry:
    file: Any = entry.data_file
    file.spec_id = manifest.partition_spec_id
    return Entry(
        file,
        live=entry.status.value != 2,
        existing=entry.status.value == 0,
        snapshot_id=_first(entry.snapshot_id, manifest.added_snapshot_id),
        sequence_number=_first(entry.sequence_number, manifest.sequence_number),
        file_sequence_number=_first(entry.file_sequence_number, manifest.sequence_number),
        only_data_file=file[_REFERENCED_DATA_FILE] or only_data_file(file),
        content_offset=file[_CONTENT_OFFSET],
        content_size_in_bytes=file[_CONTENT_SIZE],
    )


def _first(told: int | None, inherited: int | None) -> int:
    return (inherited or 0) if told is None else told


def only_data_file(file: DataFile) -> str:
    """The one data file that the bounds of a position delete file allow, or nothing."""
    if int(file.content) != POSITION_DELETES:
        return ""
    lower, upper = (bounds and bounds.get(FILE_PATH_FIELD_ID) for bounds in (file.lower_bounds, file.upper_bounds))
    return lower.decode("utf-8", "surrogatepass") if lower and lower == upper else ""
