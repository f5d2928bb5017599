"""The columns at the beginning of each file: enough to see whether a declared schema is the whole schema."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping

from relayout.read.local_files import open_bytes
from relayout.table.duckdb_text import delimiter_of
from relayout.table.sources import SourceFile

HEAD_BYTES = 256 << 10
MOST_HEADS = 10_000


def columns_in_heads(files: Iterable[SourceFile], formats: Mapping[str, str]) -> set[str] | None:
    """Names of all columns in the first part of these JSON and CSV files; None when that cannot be told.

    Of more than ten thousand files an even share is looked at.
    """
    chosen = list(files)
    step = -(-len(chosen) // MOST_HEADS) if chosen else 1
    found: set[str] = set()
    for file in chosen[::step]:
        try:
            names = _names(file.path, formats[file.path])
        except (OSError, EOFError, ValueError, csv.Error):
            # Whatever is wrong with the file, the full scan names it.
            return None
        if names is None:
            return None
        found |= names
    return found


def _names(path: str, format: str) -> set[str] | None:
    if format == "parquet" or path.startswith("s3://"):
        return None
    with open_bytes(path) as source:
        head = source.read(HEAD_BYTES)
        whole = len(head) < HEAD_BYTES
    if not head:
        return None
    text = head.decode("utf-8-sig", errors="strict" if whole else "ignore")
    if format == "csv":
        return set(next(csv.reader(io.StringIO(text), delimiter=delimiter_of(path))))
    if text.lstrip().startswith("["):
        return None
    return _names_in_lines(text if whole else text[: text.rfind("\n") + 1])


def _names_in_lines(text: str) -> set[str] | None:
    """The keys of all records in lines of JSON; None when one of them is no record."""
    import pyarrow as pa
    from pyarrow.json import ReadOptions, read_json

    try:
        content = text.encode()
        options = ReadOptions(use_threads=False, block_size=max(1, len(content)))
        return set(read_json(pa.BufferReader(content), options).schema.names)
    except pa.ArrowInvalid:
        # It wants values of one type in a column; names can be told without.
        return _names_of_any_records(text)


def _names_of_any_records(text: str) -> set[str] | None:
    names: set[str] = set()
    for line in text.split("\n"):
        if line.strip():
            record = json.loads(line)
            if not isinstance(record, dict):
                return None
            names |= record.keys()
    return names
