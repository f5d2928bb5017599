"""Names on their way into SQL, folders and files: quoted, encoded, bounded; none can escape its place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from relayout.errors import UsageError
from relayout.table.batches import BatchKey, Scalar

if TYPE_CHECKING:
    from relayout.table.layouts import PartitionField

MAX_SEGMENT_BYTES = 120
MAX_PREFIX_CHARS = 80

_PLAIN_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)*)`|(?P<bare>[^`.]+)")


def quote_spark(identifier: str) -> str:
    """An identifier as Spark SQL takes it, whatever it contains."""
    return "`" + identifier.replace("`", "``") + "`"


def quote_duckdb(identifier: str) -> str:
    """An identifier as DuckDB takes it, whatever it contains."""
    return '"' + identifier.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class TableName:
    """A table and the namespace that holds it.

    No part is empty, holds control characters, or could step out of the warehouse when a catalog turns it into a
    folder (`..` as a path step).
    """

    namespace: tuple[str, ...]
    table: str

    def __post_init__(self) -> None:
        for part in (*self.namespace, self.table):
            problem = _problem_of(part)
            if problem:
                raise UsageError(
                    f"{part!r} cannot be part of a table name: {problem}", next="name the table as namespace.table"
                )
        if not self.namespace:
            raise UsageError(f"table {self.table!r} has no namespace", next="name the table as namespace.table")

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace and table in one tuple, as PyIceberg's catalogs take it."""
        return (*self.namespace, self.table)

    def spark_sql(self, catalog: str) -> str:
        """The name as Spark SQL takes it, every part quoted."""
        return ".".join(quote_spark(part) for part in (catalog, *self.identifier))

    def __str__(self) -> str:
        return ".".join(part if _PLAIN_PART.fullmatch(part) else quote_spark(part) for part in self.identifier)


def _problem_of(part: str) -> str:
    if not part:
        return "it is empty"
    if any(ord(char) < 32 or ord(char) == 127 for char in part):
        return "it holds a control character"
    if any(step in ("", ".", "..") for step in re.split(r"[/\\]", part)):
        return "it would lead out of the namespace's folder"
    return ""


def parse(text: str, default_namespace: str, catalog_name: str) -> TableName:
    """The table that a text names: `t`, `db.t` or `catalog.db.t`; parts with dots or spaces stand in backticks.

    Two parts are always namespace and table. Of three and more, the first is the catalog if it has its name.
    """
    parts = split_name(text)
    if len(parts) > 2 and parts[0] == catalog_name:
        parts = parts[1:]
    if len(parts) == 1:
        parts = (*split_name(default_namespace), *parts)
    return TableName(parts[:-1], parts[-1])


def split_name(text: str) -> tuple[str, ...]:
    """The parts of a dotted name, without their backticks."""
    parts: list[str] = []
    place = 0
    stripped = text.strip()
    while True:
        found = _PART.match(stripped, place)
        if found is None:
            break
        quoted = found["quoted"]
        parts.append(found["bare"].strip() if quoted is None else quoted.replace("``", "`"))
        place = found.end()
        if place == len(stripped):
            return tuple(parts)
        if stripped[place] != ".":
            break
        place += 1
    raise UsageError(
        f"{text!r} is not a table name", next="write table, namespace.table, or quote parts as in namespace.`my table`"
    )


def partition_path(fields: Sequence[PartitionField | str], values: Sequence[Scalar]) -> str:
    """The folder of a partition below the data folder, as Iceberg would name it: `year=2020/geo=a%2Fb`.

    `values` are partition values: results of the fields' transforms, days and years counted from 1970. Every
    segment is plain ASCII of at most 120 bytes and holds a `=`, so none is `..` and no file system refuses it.
    """
    segments = []
    for field, value in zip(fields, values, strict=True):
        name, transform = (field, "identity") if isinstance(field, str) else (field.name, field.transform)
        segments.append(_bounded(f"{_encoded(name)}={_encoded(_human(transform, value))}"))
    return "/".join(segments)


def _encoded(text: str) -> str:
    # A lone surrogate (a file name that is not UTF-8) is encoded by its own three bytes.
    return quote_plus(text, safe="*", errors="surrogatepass").replace("~", "%7E")


def _bounded(segment: str) -> str:
    if len(segment) <= MAX_SEGMENT_BYTES:
        return segment
    name, _, value = segment.partition("=")
    room = MAX_SEGMENT_BYTES - 18
    name = name[: room // 2]
    kept = f"{name}={value}"[:room]
    return f"{re.sub('%[0-9A-F]?$', '', kept)}-{_digest(segment)}"


def _human(transform: str, value: Scalar) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and transform in ("year", "month", "day", "hour"):
        return _human_time(transform, value)
    return str(value)


def _human_time(transform: str, value: int) -> str:
    if transform == "year":
        return str(1970 + value)
    if transform == "month":
        return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
    try:
        step = timedelta(days=value) if transform == "day" else timedelta(hours=value)
        moment = datetime(1970, 1, 1, tzinfo=UTC) + step
        return moment.date().isoformat() + ("" if transform == "day" else f"-{moment.hour:02d}")
    except OverflowError:
        # Beyond the calendar Python knows; the ordinal is as good a folder name.
        return str(value)


def batch_file_prefix(key: BatchKey) -> str:
    """What the names of a batch's files start with: `year_2020_`; empty for the batch that is the whole table.

    At most 80 characters of [A-Za-z0-9._-], not hidden; a hash tells keys apart whose text had to be changed or cut.
    """
    if not key.items:
        return ""
    text = "_".join(f"{name}_{_human('identity', value)}" for name, value in key.items)
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", text)
    if safe[:1] in ("_", ".", "-"):
        safe = f"x{safe}"
    if safe == text and len(safe) < MAX_PREFIX_CHARS:
        return f"{safe}_"
    return f"{safe[: MAX_PREFIX_CHARS - 10]}-{_digest(key.to_json())[:8]}_"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
