"""Remembered scans of source files; a cache that may be deleted at any time and that no decision rests on."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from relayout.table.sources import FileContent, SourceFile

MAKE = "CREATE TABLE IF NOT EXISTS scans (file TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID"


class ScanCache:
    """Scan results by everything a listing tells of a file; a cache that cannot be used is passed over."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = (folder or _cache_folder()) / "scans.sqlite"

    def known(self, files: Iterable[SourceFile], value_columns: Sequence[str]) -> dict[str, FileContent]:
        """Remembered contents by path."""
        if not self._file.exists():
            return {}
        found: dict[str, FileContent] = {}
        try:
            with closing(sqlite3.connect(self._file, timeout=10)) as connection:
                for file in files:
                    row = connection.execute(
                        "SELECT content FROM scans WHERE file = ?", (_identity(file, value_columns),)
                    ).fetchone()
                    if row:
                        found[file.path] = _decoded(row[0])
        except sqlite3.Error:
            return {}
        return found

    def remember(
        self, files: Iterable[SourceFile], value_columns: Sequence[str], contents: Iterable[FileContent]
    ) -> None:
        """Keep what was learnt of good files; a bad one is looked at again each time."""
        identities = {file.path: _identity(file, value_columns) for file in files}
        rows = [(identities[content.path], json.dumps(asdict(content))) for content in contents if not content.problem]
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=10)) as connection, connection:
                connection.execute(MAKE)
                connection.executemany("INSERT OR REPLACE INTO scans VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError):
            # Only time is lost: the files are read again when they are needed again.
            return


def _cache_folder() -> Path:
    if chosen := os.environ.get("RELAYOUT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relayout"


def _identity(file: SourceFile, value_columns: Sequence[str]) -> str:
    return json.dumps([file.path, file.size_bytes, file.modified_ns, file.changed_ns, file.etag, list(value_columns)])


def _decoded(text: str) -> FileContent:
    told = json.loads(text)
    values = told["batch_values"]
    return FileContent(
        told["path"],
        tuple((name, kind) for name, kind in told["columns"]),
        told["rows"],
        None if values is None else tuple(tuple(row) for row in values),
    )
