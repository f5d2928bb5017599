"""Iceberg's file metrics from what DuckDB tells about each file it wrote.

Bounds follow the spec's binary single-value form (https://iceberg.apache.org/spec/#binary-single-value-serialization).
A bound is only given where the statistic is exact, so that a missing bound never hides a row.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from typing import Any

from relayout.table.type_tree import MAX_PRECISION

TRUNCATED_CHARACTERS = 16
"""Iceberg's default for text and binary bounds; longer ones bloat manifests."""

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column outside lists and maps: how DuckDB names it, its field id, its Iceberg type."""

    statistics_name: str
    field_id: int
    type: str
    full_bounds: bool = False


def file_metrics(statistics: Mapping[str, Mapping[str, str]], leaves: Iterable[Leaf]) -> dict[str, Any]:
    """Counts, sizes and bounds as ContentFileParser reads them."""
    sizes: dict[int, int] = {}
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    not_numbers: dict[int, int] = {}
    lower: dict[int, str] = {}
    upper: dict[int, str] = {}
    for leaf in leaves:
        told = statistics.get(leaf.statistics_name)
        if told is None:
            continue
        if "column_size_bytes" in told:
            sizes[leaf.field_id] = int(told["column_size_bytes"])
        if "num_values" in told:
            values[leaf.field_id] = int(told["num_values"])
        if "null_count" in told:
            nulls[leaf.field_id] = int(told["null_count"])
        if "nan_count" in told:
            not_numbers[leaf.field_id] = int(told["nan_count"])
        bounds = _bounds(told, leaf)
        if bounds is not None:
            lower[leaf.field_id], upper[leaf.field_id] = bounds
    return {
        name: {"keys": list(entries), "values": list(entries.values())}
        for name, entries in (
            ("column-sizes", sizes),
            ("value-counts", values),
            ("null-value-counts", nulls),
            ("nan-value-counts", not_numbers),
            ("lower-bounds", lower),
            ("upper-bounds", upper),
        )
        if entries
    }


def _bounds(told: Mapping[str, str], leaf: Leaf) -> tuple[str, str] | None:
    if "min" not in told or "max" not in told:
        return None
    if told.get("min_is_exact") != "true" or told.get("max_is_exact") != "true":
        return None
    if leaf.type == "string" and not leaf.full_bounds:
        top = _truncated_upper(told["max"])
        if top is None:
            return None
        return told["min"][:TRUNCATED_CHARACTERS].encode().hex().upper(), top.encode().hex().upper()
    if leaf.type == "binary" and not leaf.full_bounds:
        return _truncated_hex(told["min"], told["max"])
    least, most = told["min"], told["max"]
    if leaf.type in ("float", "double"):
        # Writers may keep either zero; the spec wants bounds that hold both.
        least, most = ("-0.0" if float(least) == 0 else least), ("0.0" if float(most) == 0 else most)
    try:
        return single_value(least, leaf.type).hex().upper(), single_value(most, leaf.type).hex().upper()
    except (ValueError, OverflowError, ArithmeticError):
        # A value that this form cannot hold (a date in the year 20000, say) gets no bound, which prunes nothing.
        return None


def _truncated_upper(text: str) -> str | None:
    """The shortest text of at most sixteen characters that is not below any text with this prefix."""
    if len(text) <= TRUNCATED_CHARACTERS:
        return text
    head = text[:TRUNCATED_CHARACTERS]
    for index in range(len(head) - 1, -1, -1):
        following = ord(head[index]) + 1
        if 0xD800 <= following <= 0xDFFF:
            following = 0xE000
        if following <= 0x10FFFF:
            return head[:index] + chr(following)
    return None


def _truncated_hex(least: str, most: str) -> tuple[str, str] | None:
    """Hexadecimal bounds of at most sixteen bytes; None when no such upper bound is there."""
    digits = 2 * TRUNCATED_CHARACTERS
    top = bytes.fromhex(most[:digits])
    if len(most) > digits:
        top = top.rstrip(b"\xff")
        if not top:
            return None
        top = top[:-1] + bytes([top[-1] + 1])
    return least[:digits], top.hex().upper()


def single_value(text: str, type_text: str) -> bytes:
    """Plain text of a value in the binary form of its Iceberg type."""
    name = type_text.split("(", maxsplit=1)[0].split("[", maxsplit=1)[0]
    if name == "decimal":
        return _unscaled(Decimal(text), int(type_text.split(",")[1].rstrip(") ")))
    if name not in _BINARY_FORMS:
        raise ValueError(f"no bounds for {type_text}")
    return _BINARY_FORMS[name](text)


def _microseconds_of_day(moment: time) -> int:
    return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000 + moment.microsecond


def _microseconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _unscaled(value: Decimal, scale: int) -> bytes:
    # The usual context of 28 digits would round what 38 digits hold.
    number = int(value.scaleb(scale, Context(prec=MAX_PRECISION)))
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


_BINARY_FORMS: Mapping[str, Callable[[str], bytes]] = {
    "boolean": lambda text: b"\x01" if text in ("1", "true") else b"\x00",
    "int": lambda text: struct.pack("<i", int(text)),
    "long": lambda text: struct.pack("<q", int(text)),
    "float": lambda text: struct.pack("<f", float(text)),
    "double": lambda text: struct.pack("<d", float(text)),
    "string": str.encode,
    "uuid": lambda text: uuid.UUID(text).bytes,
    "binary": bytes.fromhex,
    "fixed": bytes.fromhex,
    "date": lambda text: struct.pack("<i", date.fromisoformat(text).toordinal() - EPOCH_ORDINAL),
    "time": lambda text: struct.pack("<q", _microseconds_of_day(time.fromisoformat(text))),
    "timestamp": lambda text: struct.pack("<q", _microseconds(text)),
    "timestamptz": lambda text: struct.pack("<q", _microseconds(text)),
}
"""By type, how a bound's text becomes bytes (https://iceberg.apache.org/spec/#binary-single-value-serialization)."""
