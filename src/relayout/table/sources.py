"""Source files as facts: where they are, how they are recognised again, what their path says."""

from __future__ import annotations

from dataclasses import dataclass

PathValues = tuple[tuple[str, str | None], ...]
"""Column name and text, in pattern order; None stands for Hive's default (null) partition."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source as a listing shows it.

    `path` is an absolute local path or an `s3://bucket/key` address. `etag` is empty for local files,
    `changed_ns` (the inode change time) is 0 for objects.
    """

    path: str
    size_bytes: int
    modified_ns: int
    changed_ns: int = 0
    etag: str = ""
    path_values: PathValues = ()

    @property
    def looks_like(self) -> tuple[int, int, str]:
        """What a listing can tell about the content without reading it."""
        return (self.size_bytes, 0 if self.etag else self.modified_ns, self.etag)


@dataclass(frozen=True, slots=True)
class BadFile:
    """A source file that cannot be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class FileContent:
    """What reading a source file told: columns with Iceberg type text, rows, values of the batch columns.

    `batch_values` holds one tuple of texts (None = null) per distinct combination of the columns that were
    asked for; it is None when none were asked for. `problem` says why the file is bad, empty when it is good.
    """

    path: str
    columns: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    batch_values: tuple[tuple[str | None, ...], ...] | None = None
    problem: str = ""
