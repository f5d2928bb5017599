"""How the live files of a table are sized: counted while manifests stream by, so memory stays as small as it is."""

from __future__ import annotations

from array import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relayout.read.manifests import DATA, POSITION_DELETES, live_entries

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import Table

MB = 1 << 20
SIZE_CLASSES = (("<8M", 8 * MB), ("8-32M", 32 * MB), ("32-128M", 128 * MB), ("128-512M", 512 * MB))
LARGEST_CLASS = ">512M"
CLASS_NAMES = (*(name for name, _ in SIZE_CLASSES), LARGEST_CLASS)

MIN_INPUT_FILES = 5
"""So many small files of one partition are merged even if they do not fill a file; Iceberg's own default."""

_READERS = 8


@dataclass(frozen=True, slots=True)
class SpecFiles:
    """The data files of one partition spec; `histogram` counts them by `CLASS_NAMES`."""

    spec_id: int
    data_files: int
    size_bytes: int
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileCensus:
    """The live files of one snapshot.

    `excess_files` is how many files fewer there would be if small ones were merged where a compaction would merge
    them; `lone_files` are small ones that have too few neighbours in their partition for that. `deleted_rows` counts
    positions in delete files, which may name a row twice.
    """

    specs: tuple[SpecFiles, ...] = ()
    rows: int = 0
    small_files: int = 0
    excess_files: int = 0
    lone_files: int = 0
    position_delete_files: int = 0
    equality_delete_files: int = 0
    deleted_rows: int = 0

    @property
    def data_files(self) -> int:
        return sum(spec.data_files for spec in self.specs)

    @property
    def size_bytes(self) -> int:
        return sum(spec.size_bytes for spec in self.specs)

    @property
    def delete_files(self) -> int:
        return self.position_delete_files + self.equality_delete_files


def files_in_manifests(table: Table) -> int:
    """How many entries a census would read, told by the manifest list alone."""
    return sum(
        (manifest.added_files_count or 0) + (manifest.existing_files_count or 0) for manifest in _manifests(table)
    )


def census(table: Table, small_below_bytes: int, target_bytes: int) -> FileCensus:
    """Count the live files of the current snapshot."""
    total = _Count(small_below_bytes)
    manifests = _manifests(table)
    if len(manifests) <= 1:
        for manifest in manifests:
            total.read(manifest, table.io)
        return total.finished(target_bytes)
    with ThreadPoolExecutor(_READERS) as pool:
        # Threads only wait together for a distant store; what they count is added up here, one manifest at a time.
        for part in pool.map(lambda manifest: _Count(small_below_bytes).read(manifest, table.io), manifests):
            total.add(part)
    return total.finished(target_bytes)


def _manifests(table: Table) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    return snapshot.manifests(table.io) if snapshot else []


@dataclass(slots=True)
class _Count:
    """A running count; small files leave 16 bytes each behind, everything else only numbers."""

    small_below_bytes: int
    specs: dict[int, list[int]] = field(default_factory=dict)
    rows: int = 0
    position_delete_files: int = 0
    equality_delete_files: int = 0
    deleted_rows: int = 0
    small_groups: array[int] = field(default_factory=lambda: array("q"))
    small_sizes: array[int] = field(default_factory=lambda: array("q"))

    def read(self, manifest: ManifestFile, io: FileIO) -> _Count:
        spec_id = manifest.partition_spec_id
        for entry in live_entries([manifest], io):
            content = int(entry.file.content)
            if content == DATA:
                self._data_file(entry.file, spec_id)
            elif content == POSITION_DELETES:
                self.position_delete_files += 1
                self.deleted_rows += entry.file.record_count
            else:
                self.equality_delete_files += 1
        return self

    def _data_file(self, file: DataFile, spec_id: int) -> None:
        size = file.file_size_in_bytes
        counts = self.specs.get(spec_id)
        if counts is None:
            counts = self.specs[spec_id] = [0, 0] + [0] * len(CLASS_NAMES)
        counts[0] += 1
        counts[1] += size
        counts[2 + size_class(size)] += 1
        self.rows += file.record_count
        if size < self.small_below_bytes:
            values = [file.partition[position] for position in range(len(file.partition))]
            # As text, because Python's hashes of -1 and -2 are the same.
            self.small_groups.append(hash((spec_id, repr(values))))
            self.small_sizes.append(size)

    def add(self, other: _Count) -> None:
        for spec_id, counts in other.specs.items():
            mine = self.specs.setdefault(spec_id, [0] * len(counts))
            mine[:] = [left + right for left, right in zip(mine, counts, strict=True)]
        self.rows += other.rows
        self.position_delete_files += other.position_delete_files
        self.equality_delete_files += other.equality_delete_files
        self.deleted_rows += other.deleted_rows
        self.small_groups.extend(other.small_groups)
        self.small_sizes.extend(other.small_sizes)

    def finished(self, target_bytes: int) -> FileCensus:
        excess, lone = self._mergeable(target_bytes)
        return FileCensus(
            specs=tuple(
                SpecFiles(spec_id, counts[0], counts[1], tuple(counts[2:]))
                for spec_id, counts in sorted(self.specs.items())
            ),
            rows=self.rows,
            small_files=len(self.small_sizes),
            excess_files=excess,
            lone_files=lone,
            position_delete_files=self.position_delete_files,
            equality_delete_files=self.equality_delete_files,
            deleted_rows=self.deleted_rows,
        )

    def _mergeable(self, target_bytes: int) -> tuple[int, int]:
        import numpy as np

        if not self.small_sizes:
            return 0, 0
        _, group = np.unique(np.frombuffer(self.small_groups, dtype=np.int64), return_inverse=True)
        files = np.bincount(group)
        sizes = np.zeros(len(files), dtype=np.int64)
        np.add.at(sizes, group, np.frombuffer(self.small_sizes, dtype=np.int64))
        merged = (files >= MIN_INPUT_FILES) | ((files > 1) & (sizes >= target_bytes))
        after = np.maximum(1, -(-sizes // target_bytes))
        return int(np.maximum(0, files - after)[merged].sum()), int(files[~merged].sum())


def size_class(size_bytes: int) -> int:
    """Position of a size in `CLASS_NAMES`."""
    for position, (_, bound) in enumerate(SIZE_CLASSES):
        if size_bytes < bound:
            return position
    return len(SIZE_CLASSES)
