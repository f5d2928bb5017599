"""Reading many files at once and still knowing which of them is bad."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relayout.errors import RelayoutError
from relayout.read.reasons import plain_reason
from relayout.table.duckdb_text import LocalFile
from relayout.table.sources import FileContent

Read = Callable[[Sequence[LocalFile]], dict[str, FileContent]]


def read_apart(files: Sequence[LocalFile], read: Read) -> dict[str, FileContent]:
    """Read files together; where that fails halve them until the bad ones stand alone with their reason."""
    import duckdb

    if not files:
        return {}
    try:
        return read(files)
    except (duckdb.Error, RelayoutError, RuntimeError) as problem:
        # DuckDB's Parquet reader lets some damage through as a bare error of the C++ runtime, hence RuntimeError.
        if len(files) == 1:
            path = files[0].path
            message = problem.what if isinstance(problem, RelayoutError) else str(problem)
            return {path: FileContent(path, problem=plain_reason(message, path))}
    half = len(files) // 2
    return read_apart(files[:half], read) | read_apart(files[half:], read)
