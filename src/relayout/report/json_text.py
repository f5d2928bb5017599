"""Values as JSON that every parser takes: no NaN, no lone surrogates, nothing that a terminal would act on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

_UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON allows but an encoder or a terminal trips over; as an escape it means the same."""


def json_text(document: Mapping[str, Any]) -> str:
    """One document, indented, keys in their own order; a newline ends it."""
    return _escaped(json.dumps(json_value(document), ensure_ascii=False, allow_nan=False, indent=2)) + "\n"


def json_line(value: object) -> str:
    """A value on one line."""
    return _escaped(json.dumps(json_value(value), ensure_ascii=False, allow_nan=False))


def json_value(value: object) -> Any:
    """The value in JSON's own types.

    Numbers that JSON has not (decimals, NaN, infinities), dates, times and bytes (as hexadecimal digits) become texts.
    A struct becomes an object, also one that is a named tuple of Spark's; a map with keys that are not texts becomes a
    list of pairs.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case Decimal():
            return format(value, "f")
        case date() | time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return value.hex()
        case Mapping():
            return _object(value.items())
        case list() | tuple():
            names = getattr(value, "__fields__", None)
            return [json_value(item) for item in value] if names is None else _object(zip(names, value, strict=True))
        case _:
            return str(value)


def _object(items: Iterable[tuple[Any, object]]) -> dict[str, Any] | list[list[Any]]:
    pairs = [(key, json_value(item)) for key, item in items]
    if all(isinstance(key, str) for key, _ in pairs) and len({key for key, _ in pairs}) == len(pairs):
        return dict(pairs)
    return [[json_value(key), item] for key, item in pairs]


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
