"""One local source file: its format, its streams, what is wrong with it at first sight, how a reader must see it."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from relayout.errors import RelayoutError, SourceError
from relayout.table.batches import Scalar
from relayout.table.duckdb_text import LocalFile, delimiter_of, path_literal
from relayout.table.types import from_arrow

_FORMATS = {"json": "json", "ndjson": "json", "jsonl": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet"}
_COMPRESSIONS = {"gz": "gz", "zst": "zst"}
_ZSTD_FRAME = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_CHUNK_BYTES = 1 << 20
_LONGEST_HEADER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Footer:
    """What a Parquet file says of itself."""

    columns: tuple[tuple[str, str], ...]
    rows: int


def format_of(path: str) -> tuple[str, str] | None:
    """Format and compression (empty, `gz`, `zst`) by the name's endings; None when they are unknown."""
    parts = path.rsplit("/", 1)[-1].lower().split(".")
    compression = _COMPRESSIONS.get(parts[-1], "") if len(parts) > 2 else ""
    format = _FORMATS.get(parts[-2] if compression else parts[-1]) if len(parts) > 1 else None
    if format is None or (format == "parquet" and compression):
        return None
    return format, compression


def described(path: str, format: str, values: Sequence[tuple[str, Scalar]] = ()) -> LocalFile:
    """The file as `read_clause` needs it; SourceError when a first look shows that it cannot be read.

    Looks at sizes, ends, headers and footers only: a cut line or a wrong type shows when the content is read.
    """
    path_literal(path)
    told = tuple(values)
    if os.stat(path).st_size == 0:
        raise _bad(path, "empty file")
    if format == "parquet":
        return LocalFile(path, format, parquet_footer(path).columns, told)
    compression = compression_of(path)
    if compression == "zst" and not zstandard_is_whole(path):
        raise _bad(path, "torn zst: the file ends before its data does")
    if format == "csv":
        names, line_end = csv_header(path)
        return LocalFile(path, format, tuple((name, "string") for name in names), told, line_end)
    _check_array(path)
    return LocalFile(path, format, (), told)


def compression_of(path: str) -> str:
    """By the last ending alone, so that a format that is set explicitly may have any name before it."""
    return _COMPRESSIONS.get(path.rsplit(".", 1)[-1].lower(), "") if "." in path else ""


def content_hash(path: str) -> str:
    """SHA-256 of a local file's bytes, in memory that does not grow with the file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_bytes(path: str) -> IO[bytes]:
    """The decompressed bytes of a local file, as a stream that gives lines; seekable where nothing is compressed."""
    codec = {"gz": "gzip", "zst": "zstd"}.get(compression_of(path))
    if codec is None:
        return open(path, "rb", buffering=_CHUNK_BYTES)
    import pyarrow as pa

    # Arrow's own streams have no lines, and may give less than was asked for.
    return io.BufferedReader(pa.input_stream(path, compression=codec), _CHUNK_BYTES)


def csv_header(path: str) -> tuple[tuple[str, ...], str]:
    """The column names of a CSV file and how its header ends; SourceError when the first line cannot name columns."""
    try:
        with open_bytes(path) as stream:
            start = _some(stream, _LONGEST_HEADER_BYTES)
        text = io.TextIOWrapper(io.BytesIO(start), encoding="utf-8-sig", newline="", errors="surrogateescape")
        lines = text.readlines()
        header = csv.reader(lines, delimiter=delimiter_of(path), strict=True)
        names = next(header, None)
    except csv.Error as problem:
        raise _bad(path, f"its header cannot be read: {problem}") from None
    except OSError as problem:
        raise _damaged(path, problem) from None
    if names is None:
        raise _bad(path, "empty file")
    if any(not name.isascii() and name != name.encode("utf-8", "replace").decode() for name in names):
        raise _bad(path, "not UTF-8 text")
    if "" in names or not names:
        raise _bad(path, f"column {names.index('') + 1 if names else 1} of its header has no name")
    lowered = [name.lower() for name in names]
    twice = [name for name in names if lowered.count(name.lower()) > 1]
    if twice:
        raise _bad(path, f"its header names {twice[0]!r} twice")
    last = lines[header.line_num - 1]
    return tuple(names), last[len(last.rstrip("\r\n")) :]


def parquet_footer(path: str) -> Footer:
    """Columns and rows from the footer; SourceError when there is none or a type has no place in a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        columns = tuple((str(field.name), from_arrow(field.type)) for field in schema)
    except RelayoutError as problem:
        raise _bad(path, problem.what) from problem
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as problem:
        first = str(problem).split("\n", 1)[0]
        raise _bad(path, f"not a whole Parquet file: {first}") from problem
    return Footer(columns, rows)


def zstandard_is_whole(path: str) -> bool:
    """Whether all frames of a Zstandard file are complete; walks block headers and decompresses nothing.

    DuckDB takes a file that was cut between two blocks for a shorter one, so this has to be asked before.
    """
    size = os.stat(path).st_size
    with open(path, "rb", buffering=1 << 12) as file:
        while file.tell() < size:
            magic = _number(file, 4)
            if magic is None:
                return False
            if magic & ~0xF == _ZSTD_SKIPPABLE:
                length = _number(file, 4)
                if length is None:
                    return False
                file.seek(length, os.SEEK_CUR)
            elif magic != _ZSTD_FRAME or not _skip_frame(file):
                return False
        return file.tell() == size


def _skip_frame(file: IO[bytes]) -> bool:
    descriptor = _number(file, 1)
    if descriptor is None:
        return False
    single = descriptor >> 5 & 1
    size_bytes = (single, 2, 4, 8)[descriptor >> 6]
    file.seek((1 - single) + (0, 1, 2, 4)[descriptor & 3] + size_bytes, os.SEEK_CUR)
    while (block := _number(file, 3)) is not None:
        repeated = block >> 1 & 3 == 1
        file.seek(1 if repeated else block >> 3, os.SEEK_CUR)
        if block & 1:
            file.seek(4 * (descriptor >> 2 & 1), os.SEEK_CUR)
            return True
    return False


def _number(file: IO[bytes], length: int) -> int | None:
    data = file.read(length)
    return int.from_bytes(data, "little") if len(data) == length else None


def _check_array(path: str) -> None:
    # DuckDB reads `[{…},` as a whole array, so a file that was cut behind a comma would lose rows in silence.
    try:
        with open_bytes(path) as stream:
            start = _some(stream, 1 << 12)
            if not start:
                raise _bad(path, "empty file")
            if not start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
                return
            end = start
            if not compression_of(path):
                stream.seek(max(0, os.stat(path).st_size - (1 << 12)))
            while chunk := stream.read(_CHUNK_BYTES):
                end = (end + chunk)[-(1 << 12) :]
    except OSError as problem:
        raise _damaged(path, problem) from None
    if not end.rstrip().endswith(b"]"):
        raise _bad(path, "cut JSON array: the closing ] is missing")


def _some(stream: IO[bytes], wanted: int) -> bytes:
    parts: list[bytes] = []
    held = 0
    while held < wanted and (chunk := stream.read(min(1 << 16, wanted - held))):
        parts.append(chunk)
        held += len(chunk)
        if b"\n" in chunk:
            break
    return b"".join(parts)


def _damaged(path: str, problem: OSError) -> SourceError:
    """What a decompressor says, in plain words."""
    kind = {"gz": "gzip"}.get(ending := compression_of(path), ending)
    if kind and "Truncated" in str(problem):
        return _bad(path, f"torn {kind}: the file ends before its data does")
    if kind and "incorrect header check" in str(problem):
        return _bad(path, f"not {kind} data, though its name says so")
    return _bad(path, f"damaged {kind} data: {problem}" if kind else f"cannot be read: {problem.strerror or problem}")


def _bad(path: str, reason: str) -> SourceError:
    return SourceError(reason, where=path, next="repair the file or take it away; the other files go on")


def sample_lines(path: str, sample_bytes: int) -> tuple[int, int]:
    """Rows in the first part of a text file, and how many stored bytes that part takes."""
    import pyarrow as pa

    codec = {"gz": "gzip", "zst": "zstd"}.get(compression_of(path))
    with pa.OSFile(path) as stored:
        stream: Any = pa.CompressedInputStream(stored, codec) if codec else stored
        data = stream.read(sample_bytes)
        used = stored.tell() if len(data) == sample_bytes else stored.size()
    return max(data.count(b"\n"), data.count(b"},"), 1), max(used, 1)
