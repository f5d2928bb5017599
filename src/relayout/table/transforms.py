"""Transforms on values: what they make of a value, and what a partition value says of its source column.

Unlike `layouts`, which spells transforms, this computes them, from Iceberg's own form of values.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from relayout.table.evidence import ANYTHING, ONLY_NULLS, Evidence, Value, exactly, prefix_end
from relayout.table.moments import civil, hours_of, period_of, period_start

PERIODS = ("year", "month", "day", "hour")
_SIZED = re.compile(r"(bucket|truncate)\[([0-9]+)\]")


@dataclass(frozen=True, slots=True)
class Transform:
    """A partition transform by name and size; `unknown` for one that this version cannot compute."""

    name: str
    size: int = 0

    @classmethod
    def parse(cls, text: str) -> Transform:
        sized = _SIZED.fullmatch(text)
        if sized:
            return cls(sized[1], int(sized[2]))
        return cls(text if text in ("identity", "void", *PERIODS) else "unknown")

    def __str__(self) -> str:
        return f"{self.name}[{self.size}]" if self.size else self.name


def apply(transform: Transform, kind: str, value: Value) -> Value:
    """The partition value of a source value; a null stays null."""
    if value is None or transform.name == "void":
        return None
    match transform.name:
        case "identity":
            return value
        case "bucket":
            return bucket_hash(kind, value) % transform.size
        case "truncate":
            return truncated(value, transform.size)
        case "unknown":
            raise ValueError("a transform that this version does not know")
        case period:
            return period_of(value, kind, period)


def truncated(value: Value, width: int) -> Value:
    """Texts and bytes to their first characters or bytes, numbers down to a multiple of the width."""
    return value[:width] if isinstance(value, str | bytes) else value - value % width


def bucket_hash(kind: str, value: Value) -> int:
    """The hash behind `bucket[N]`, without its sign, as the specification's appendix B defines it."""
    return _murmur(_hashed_bytes(kind, value)) & 0x7FFFFFFF


def _hashed_bytes(kind: str, value: Value) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    number = int(value)
    if kind.startswith("decimal"):
        # One more bit than the number itself for its sign; -2**n needs none.
        return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
    return struct.pack("<q", number // 1000 if kind.endswith("_ns") else number)


def _murmur(data: bytes) -> int:
    """Murmur3, 32 bits, x86 variant, seed 0."""
    mask, state = 0xFFFFFFFF, 0
    whole = len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        state ^= _mixed(block)
        state = (state << 13 | state >> 19) & mask
        state = (state * 5 + 0xE6546B64) & mask
    if whole < len(data):
        state ^= _mixed(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    return state ^ state >> 16


def _mixed(block: int) -> int:
    block = block * 0xCC9E2D51 & 0xFFFFFFFF
    block = (block << 15 | block >> 17) & 0xFFFFFFFF
    return block * 0x1B873593 & 0xFFFFFFFF


def source_evidence(transform: Transform, kind: str, value: Value) -> Evidence:
    """What a partition value says of the source column's values in all files that have it."""
    if transform.name in ("void", "unknown"):
        return ANYTHING
    if value is None:
        return ONLY_NULLS
    if transform.name == "identity":
        return exactly(value)
    known = Evidence(may_have_nulls=False, may_have_nans=False)
    if transform.name == "bucket":
        return replace(known, buckets=((transform.size, value),))
    return replace(known, **_span(transform, kind, value))


def range_evidence(transform: Transform, kind: str, lower: Value, upper: Value) -> Evidence:
    """What the least and the greatest partition value of many files say of the source; None where it is not known.

    Whether there are nulls or NaN is for the caller to say.
    """
    if transform.name in ("void", "unknown", "bucket"):
        one_bucket = transform.name == "bucket" and lower is not None and lower == upper
        return Evidence(buckets=((transform.size, lower),)) if one_bucket else ANYTHING
    if transform.name == "identity":
        return Evidence(lower=lower, upper=upper)
    known: dict[str, Any] = {}
    if lower is not None:
        known["lower"] = _span(transform, kind, lower)["lower"]
    if upper is not None:
        known |= {key: value for key, value in _span(transform, kind, upper).items() if key != "lower"}
    return Evidence(**known)


def _span(transform: Transform, kind: str, value: Value) -> dict[str, Any]:
    """The source values that a transform other than identity and bucket maps to this one."""
    if transform.name in PERIODS:
        following = period_start(value + 1, kind, transform.name)
        return {"lower": period_start(value, kind, transform.name), "upper": following - 1}
    if isinstance(value, str | bytes):
        if len(value) < transform.size:
            return {"lower": value, "upper": value}
        return {"lower": value, "upper": prefix_end(value), "upper_is_open": True}
    return {"lower": value, "upper": value + transform.size - 1}


@dataclass(frozen=True, slots=True)
class Function:
    """What a filter computes of a column: a transform, a part of a date or a prefix; `size` is its number, if any."""

    name: str
    size: int = 0

    def sql(self, column: str) -> str:
        """The function as a filter spells it."""
        name = _SPELLINGS.get(self.name, self.name)
        return f"{name}({self.size}, {column})" if self.size else f"{name}({column})"


_SPELLINGS = {
    "calendar_year": "year",
    "month_of_year": "month",
    "day_of_month": "dayofmonth",
    "hour_of_day": "hour",
    "year": "years",
    "month": "months",
    "day": "days",
    "hour": "hours",
}

CALENDAR_PARTS = {"calendar_year": "", "month_of_year": "year", "day_of_month": "month", "hour_of_day": "day"}
"""Functions that give a number out of a date; within one period of the name on the right they only grow."""


def compute(function: Function, kind: str, value: Value) -> Value:
    """The function's value; a null stays null."""
    if value is None:
        return None
    if function.name not in CALENDAR_PARTS:
        return apply(Transform(function.name, function.size), kind, value)
    hours = hours_of(value, kind)
    if function.name == "hour_of_day":
        return hours % 24
    return civil(hours // 24)[("calendar_year", "month_of_year", "day_of_month").index(function.name)]


def evidence_of_function(function: Function, kind: str, known: Evidence) -> Evidence:
    """What is known of the function's values when this much is known of the column's."""
    if function.name == "bucket":
        return _bucket_evidence(function.size, kind, known)
    lower = None if known.lower is None else compute(function, kind, known.lower)
    upper = None if known.upper is None else compute(function, kind, known.upper)
    period = CALENDAR_PARTS.get(function.name, "")
    if period and (lower is None or upper is None or _differ(known.lower, known.upper, kind, period)):
        lower, upper = None, None
    is_open = known.upper_is_open and upper == known.upper
    return Evidence(known.may_have_nulls, known.may_have_values, False, lower, upper, is_open)


def _differ(lower: Value, upper: Value, kind: str, period: str) -> bool:
    return period_of(lower, kind, period) != period_of(upper, kind, period)


def _bucket_evidence(size: int, kind: str, known: Evidence) -> Evidence:
    found = None
    if known.only_value is not None:
        found = bucket_hash(kind, known.only_value) % size
    else:
        found = next((bucket % size for count, bucket in known.buckets if count % size == 0), None)
    return Evidence(known.may_have_nulls, known.may_have_values, False, found, found)


def excludes(known: Evidence, kind: str, value: Value) -> bool:
    """Whether the buckets that all values fall into rule this one value out."""
    if not known.buckets:
        return False
    if isinstance(value, Fraction):
        return True
    try:
        found = bucket_hash(kind, value)
    except (struct.error, OverflowError):
        # More than the column's type can hold.
        return True
    return any(found % count != bucket for count, bucket in known.buckets)
