"""Literals of filters in Iceberg's own form; one that does not fit the column's type is refused.

Whole numbers are not bound to the width of the column: `id < 3000000000` on an int column is simply always true.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

from relayout.errors import UsageError
from relayout.table.evidence import Value
from relayout.table.moments import UNITS_PER_HOUR, day_count


@dataclass(frozen=True, slots=True)
class Counted:
    """A date or moment that is given as its count since 1970 already."""

    count: int

    def __str__(self) -> str:
        return str(self.count)


_DATE = re.compile(r"(?P<year>[+-]?[0-9]{4,6})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})")
_CLOCK = re.compile(r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?")
_ZONE = re.compile(r"(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})|Z|UTC")
_NANOS = 1_000_000_000


def literal_value(literal: Any, kind: str, column: str) -> Value:
    """A literal as the column's type has it; UsageError names the column when it does not fit."""
    try:
        return _value(literal, kind)
    except (ValueError, TypeError, ArithmeticError) as problem:
        raise UsageError(
            f"{literal!r} cannot be compared with {column!r}, which is {kind}"
            + (f": {problem}" if str(problem) else ""),
            where="filter",
            next=_EXAMPLES.get(_name_of(kind), "write a value of the column's type"),
        ) from None


_EXAMPLES: Mapping[str, str] = {
    "int": "write a number without quotes",
    "long": "write a number without quotes",
    "decimal": "write a number without quotes",
    "string": "write it in single quotes",
    "date": "write DATE '2024-01-31'",
    "timestamp": "write TIMESTAMP '2024-01-31 12:00:00'",
    "timestamptz": "write TIMESTAMP '2024-01-31 12:00:00+00:00'; without a zone it means UTC",
    "boolean": "write true or false",
    "binary": "write X'0A0B'",
}


def _name_of(kind: str) -> str:
    """`decimal` of `decimal(18,2)`."""
    return kind.partition("(")[0].partition("[")[0]


def _value(literal: Any, kind: str) -> Value:
    name = _name_of(kind)
    if isinstance(literal, bool) or name == "boolean":
        if isinstance(literal, bool) and name == "boolean":
            return literal
        raise TypeError
    match name:
        case "int" | "long":
            return _whole(Fraction(_number(literal)))
        case "decimal":
            return _whole(Fraction(_number(literal)) * 10 ** int(kind[len("decimal(") : -1].split(",")[1]))
        case "float" | "double":
            if isinstance(literal, str) and literal.lower() in ("nan", "infinity", "-infinity", "inf", "-inf"):
                return float(literal)
            return float(_number(literal))
        case "string":
            return _text(literal)
        case "uuid":
            return literal.bytes if isinstance(literal, uuid.UUID) else uuid.UUID(_text(literal)).bytes
        case "binary" | "fixed":
            return _bytes(literal)
        case _:
            return _moment(literal, name)


def _number(literal: Any) -> Any:
    if isinstance(literal, int | float | Decimal | Fraction):
        return literal
    raise TypeError


def _whole(number: Fraction) -> Value:
    return number.numerator if number.denominator == 1 else number


def _text(literal: Any) -> str:
    if isinstance(literal, str):
        return literal
    raise TypeError


def _bytes(literal: Any) -> bytes:
    if isinstance(literal, bytes | bytearray | memoryview):
        return bytes(literal)
    raise TypeError


def _moment(literal: Any, name: str) -> int:
    if isinstance(literal, Counted):
        return literal.count
    if isinstance(literal, datetime | date | time):
        literal = literal.isoformat()
    text = _text(literal).strip()
    if name == "time":
        return _nanoseconds(text) // 1000
    found = _DATE.match(text)
    if found is None:
        raise ValueError("dates are written YYYY-MM-DD")
    year, month, day = (int(found[part]) for part in ("year", "month", "day"))
    if not (1 <= month <= 12 and 1 <= day <= 31) or day_count(year, month, day) >= _next_month(year, month):
        raise ValueError("there is no such day")
    days = day_count(year, month, day)
    rest = text[found.end() :]
    if name == "date":
        if rest and _clock_and_zone(rest[1:]) != (0, None):
            raise ValueError("a date has no time of day")
        return days
    clock, zone = _clock_and_zone(rest[1:]) if rest else (0, None)
    if zone is not None and "tz" not in name:
        raise ValueError("the column has no time zone")
    nanoseconds = days * 24 * 3600 * _NANOS + clock - (zone or 0) * _NANOS
    unit = 3600 * _NANOS // UNITS_PER_HOUR[name]
    return _whole(Fraction(nanoseconds, unit)) if nanoseconds % unit else nanoseconds // unit


def _next_month(year: int, month: int) -> int:
    return day_count(year + month // 12, month % 12 + 1, 1)


def _clock_and_zone(text: str) -> tuple[int, int | None]:
    """Nanoseconds since midnight, and the zone's seconds east of Greenwich."""
    found = _CLOCK.match(text)
    if found is None:
        raise ValueError("times are written HH:MM:SS")
    rest = text[found.end() :].strip()
    if not rest:
        return _nanoseconds(found[0]), None
    zone = _ZONE.fullmatch(rest)
    if zone is None:
        raise ValueError(f"{rest!r} is not a time zone such as +02:00")
    if zone["sign"] is None:
        return _nanoseconds(found[0]), 0
    seconds = int(zone["hours"]) * 3600 + int(zone["minutes"]) * 60
    return _nanoseconds(found[0]), -seconds if zone["sign"] == "-" else seconds


def _nanoseconds(text: str) -> int:
    found = _CLOCK.fullmatch(text)
    if found is None or int(found["hour"]) > 23 or int(found["minute"]) > 59 or int(found["second"] or 0) > 59:
        raise ValueError("times are written HH:MM:SS")
    seconds = int(found["hour"]) * 3600 + int(found["minute"]) * 60 + int(found["second"] or 0)
    return seconds * _NANOS + int((found["fraction"] or "").ljust(9, "0"))
