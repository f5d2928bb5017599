"""What is known of a column's values in one file, and what follows from it for a comparison.

Evidence comes from partition values, from column statistics, or from a manifest's summaries; it only ever narrows.
Values are in Iceberg's own form: dates and moments are counts, decimals their unscaled number, binary and uuid bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

Value = Any
"""bool, int, float, str or bytes; a literal that lies between two whole numbers is a Fraction."""


class Verdict(IntEnum):
    """Whether rows of a file match: none, perhaps some, all. The order is the one of `and` and `or`."""

    CANNOT = 0
    MIGHT = 1
    MUST = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """Bounds enclose every value that is neither null nor NaN; `upper_is_open` leaves the upper one itself out.

    `buckets` holds (number of buckets, bucket) pairs that all values fall into.
    """

    may_have_nulls: bool = True
    may_have_values: bool = True
    may_have_nans: bool = True
    lower: Value = None
    upper: Value = None
    upper_is_open: bool = False
    buckets: tuple[tuple[int, int], ...] = ()

    @property
    def only_value(self) -> Value:
        """The one value that is possible besides nulls, or None."""
        if self.lower is None or self.may_have_nans or self.upper_is_open:
            return None
        return self.lower if self.lower == self.upper else None

    def narrowed_by(self, other: Evidence) -> Evidence:
        """What both say together; bounds that contradict each other say nothing."""
        lower = _tighter(self.lower, other.lower, max)
        upper, is_open = self.upper, self.upper_is_open
        if other.upper is not None and (upper is None or other.upper < upper or (other.upper == upper and not is_open)):
            upper, is_open = other.upper, other.upper_is_open
        both = Evidence(
            self.may_have_nulls and other.may_have_nulls,
            self.may_have_values and other.may_have_values,
            self.may_have_nans and other.may_have_nans,
            lower,
            upper,
            is_open,
            tuple(dict.fromkeys(self.buckets + other.buckets)),
        )
        contradictory = lower is not None and upper is not None and lower > upper
        return replace(both, lower=None, upper=None, upper_is_open=False) if contradictory else both


ANYTHING = Evidence()
ONLY_NULLS = Evidence(may_have_values=False, may_have_nans=False)


def exactly(value: Value) -> Evidence:
    """The evidence of a column that has this one value, or null, in every row."""
    if value is None:
        return ONLY_NULLS
    if isinstance(value, float) and math.isnan(value):
        return Evidence(may_have_nulls=False)
    return Evidence(may_have_nulls=False, may_have_nans=False, lower=value, upper=value)


def _tighter(first: Value, second: Value, choose: Callable[..., Value]) -> Value:
    if first is None or second is None:
        return second if first is None else first
    return choose(first, second)


def prefix_end(prefix: str | bytes) -> str | bytes | None:
    """The first value above everything that starts with the prefix; None when there is none."""
    if isinstance(prefix, bytes):
        kept = prefix.rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    kept_text = prefix.rstrip("\U0010ffff")
    if not kept_text:
        return None
    following = ord(kept_text[-1]) + 1
    # Surrogates are no characters, so nothing lies between U+D7FF and U+E000.
    return kept_text[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)


# Comparisons. Each answers for values that are neither null nor NaN: may one match, must all match?

_Answer = tuple[bool, bool]


def _less(known: Evidence, limit: Value) -> _Answer:
    below = known.upper is not None and (known.upper < limit or (known.upper_is_open and known.upper <= limit))
    return known.lower is None or known.lower < limit, below


def _at_most(known: Evidence, limit: Value) -> _Answer:
    return known.lower is None or known.lower <= limit, known.upper is not None and known.upper <= limit


def _equal(known: Evidence, value: Value) -> _Answer:
    above = known.lower is not None and known.lower > value
    below = known.upper is not None and (known.upper < value or (known.upper_is_open and known.upper <= value))
    return not above and not below, known.lower == known.upper == value and not known.upper_is_open


def _starts_with(known: Evidence, prefix: str | bytes) -> _Answer:
    end = prefix_end(prefix)
    above = end is not None and known.lower is not None and known.lower >= end
    below = known.upper is not None and (known.upper < prefix or (known.upper_is_open and known.upper <= prefix))
    starts = known.lower is not None and known.lower >= prefix
    ends = end is None or (
        known.upper is not None and (known.upper < end or (known.upper_is_open and known.upper <= end))
    )
    return not above and not below, starts and ends


def _negated(answer: _Answer) -> _Answer:
    may, must = answer
    return not must, not may


def judge_nulls(known: Evidence, wanted: bool) -> Verdict:
    """`is null` when wanted, else `is not null`."""
    may, may_not = (
        (known.may_have_nulls, known.may_have_values) if wanted else (known.may_have_values, known.may_have_nulls)
    )
    return Verdict.CANNOT if not may else Verdict.MIGHT if may_not else Verdict.MUST


def judge_nans(known: Evidence, wanted: bool) -> Verdict:
    """`is nan` when wanted, else its negation; whether nulls are not NaN is left open."""
    if wanted:
        return Verdict.MIGHT if known.may_have_nans else Verdict.CANNOT
    return Verdict.MIGHT if known.may_have_nans or known.may_have_nulls else Verdict.MUST


def judge_comparison(known: Evidence, operator: str, values: Sequence[Value]) -> Verdict:
    """`lt le gt ge eq ne in not_in starts_with not_starts_with`, each with its literals.

    Nulls match nothing in SQL, but Iceberg's own `ne` and `not in` take them; so they are left open there. Engines
    disagree on NaN above numbers.
    """
    negative = operator in ("ne", "not_in", "not_starts_with")
    if not known.may_have_values:
        return Verdict.MIGHT if negative and known.may_have_nulls else Verdict.CANNOT
    may, must = _answer(known, operator, values)
    if known.may_have_nans:
        may = may or operator in ("gt", "ge") or negative
        must = must and negative
    may = may or (negative and known.may_have_nulls)
    must = must and not known.may_have_nulls
    return Verdict.CANNOT if not may else Verdict.MUST if must else Verdict.MIGHT


def _answer(known: Evidence, operator: str, values: Sequence[Value]) -> _Answer:
    match operator:
        case "lt":
            return _less(known, values[0])
        case "le":
            return _at_most(known, values[0])
        case "gt":
            return _negated(_at_most(known, values[0]))
        case "ge":
            return _negated(_less(known, values[0]))
        case "eq" | "in":
            return _any_equal(known, values)
        case "ne" | "not_in":
            return _negated(_any_equal(known, values))
        case "starts_with":
            return _starts_with(known, values[0])
        case "not_starts_with":
            return _negated(_starts_with(known, values[0]))
    raise ValueError(f"{operator} is not a comparison")


def _any_equal(known: Evidence, values: Sequence[Value]) -> _Answer:
    answers = [_equal(known, value) for value in values]
    return any(may for may, _ in answers), any(must for _, must in answers)
