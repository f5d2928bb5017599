"""Predicates on rows: as they are written, bound to a schema, and judged against what is known of a file.

Negation is pushed down to the comparisons before binding, so that judging never has to turn a verdict round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayout.errors import UsageError
from relayout.table.evidence import (
    ANYTHING,
    Evidence,
    Value,
    Verdict,
    judge_comparison,
    judge_nans,
    judge_nulls,
)
from relayout.table.literals import literal_value
from relayout.table.transforms import Function, Transform, evidence_of_function, excludes

NEGATIONS = {
    "lt": "ge",
    "ge": "lt",
    "gt": "le",
    "le": "gt",
    "eq": "ne",
    "ne": "eq",
    "in": "not_in",
    "not_in": "in",
    "starts_with": "not_starts_with",
    "not_starts_with": "starts_with",
    "is_null": "not_null",
    "not_null": "is_null",
    "is_nan": "not_nan",
    "not_nan": "is_nan",
}
_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=", "ne": "<>", "in": "IN", "not_in": "NOT IN"}
_WORDS = {"is_null": "IS NULL", "not_null": "IS NOT NULL", "is_nan": "IS NAN", "not_nan": "IS NOT NAN"}


@dataclass(frozen=True, slots=True)
class Always:
    """Every row, or none."""

    matches: bool

    def __str__(self) -> str:
        return "true" if self.matches else "false"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column, or a function of it, compared with literals; `path` has one name per level of nesting."""

    path: tuple[str, ...]
    operator: str
    literals: tuple[Any, ...] = ()
    function: Function | None = None

    def __str__(self) -> str:
        term = ".".join(name if name.isidentifier() else "`" + name.replace("`", "``") + "`" for name in self.path)
        term = term if self.function is None else self.function.sql(term)
        told = [_told(literal) for literal in self.literals]
        if self.operator in _WORDS:
            return f"{term} {_WORDS[self.operator]}"
        if self.operator in ("in", "not_in"):
            return f"{term} {_SIGNS[self.operator]} ({', '.join(told)})"
        if self.operator.endswith("starts_with"):
            return f"{'NOT ' if self.operator.startswith('not') else ''}startswith({term}, {told[0]})"
        return f"{term} {_SIGNS[self.operator]} {told[0]}"


def _told(literal: Any) -> str:
    if isinstance(literal, str):
        return "'" + literal.replace("\\", "\\\\").replace("'", "''") + "'"
    return f"X'{literal.hex()}'" if isinstance(literal, bytes) else str(literal)


@dataclass(frozen=True, slots=True)
class Not:
    """The rows for which the other predicate is false."""

    inner: Predicate

    def __str__(self) -> str:
        return f"NOT ({self.inner})"


@dataclass(frozen=True, slots=True)
class Both:
    """Rows that match all parts."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, Either) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """Rows that match at least one part."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " OR ".join(str(part) for part in self.parts)


Predicate = Always | Comparison | Not | Both | Either


def without_not(predicate: Predicate) -> Predicate:
    """The same predicate with every negation pushed into its comparisons."""
    match predicate:
        case Not(inner):
            return _negated(inner)
        case Both(parts):
            return Both(tuple(without_not(part) for part in parts))
        case Either(parts):
            return Either(tuple(without_not(part) for part in parts))
        case _:
            return predicate


def _negated(predicate: Predicate) -> Predicate:
    match predicate:
        case Always(matches):
            return Always(not matches)
        case Not(inner):
            return without_not(inner)
        case Both(parts):
            return Either(tuple(_negated(part) for part in parts))
        case Either(parts):
            return Both(tuple(_negated(part) for part in parts))
        case Comparison():
            return Comparison(predicate.path, NEGATIONS[predicate.operator], predicate.literals, predicate.function)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column that a filter can name: its id, path and type."""

    field_id: int
    path: tuple[str, ...]
    type: str


@dataclass(frozen=True, slots=True)
class BoundComparison:
    """A comparison with a column's id and type, and literals in Iceberg's own form."""

    leaf: Leaf
    operator: str
    literals: tuple[Value, ...]
    function: Function | None

    def judged(self, known: Evidence) -> Verdict:
        if self.function is not None:
            known = evidence_of_function(self.function, self.leaf.type, known)
        if self.operator.endswith("_null"):
            return judge_nulls(known, self.operator == "is_null")
        if self.operator.endswith("_nan"):
            return judge_nans(known, self.operator == "is_nan")
        literals = self.literals
        if self.function is None and self.operator in ("eq", "in", "ne", "not_in"):
            literals = tuple(value for value in literals if not excludes(known, self.leaf.type, value))
        return judge_comparison(known, self.operator, literals)


@dataclass(frozen=True, slots=True)
class BoundBoth:
    """Rows that match all parts."""

    parts: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class BoundEither:
    """Rows that match at least one part."""

    parts: tuple[Bound, ...]


Bound = Always | BoundComparison | BoundBoth | BoundEither


def bind(predicate: Predicate, leaves: Sequence[Leaf], *, case_sensitive: bool = True) -> Bound:
    """The predicate with columns found and literals converted; UsageError for an unknown field or a wrong type."""
    find = _finder(leaves, case_sensitive)
    return _bound(without_not(predicate), find)


def _bound(predicate: Predicate, find: Callable[[tuple[str, ...]], Leaf]) -> Bound:
    match predicate:
        case Both(parts):
            return BoundBoth(tuple(_bound(part, find) for part in parts))
        case Either(parts):
            return BoundEither(tuple(_bound(part, find) for part in parts))
        case Comparison():
            return _bound_comparison(predicate, find(predicate.path))
        case Always():
            return predicate
        case Not():
            raise ValueError("negations are pushed down before binding")


def _finder(leaves: Sequence[Leaf], case_sensitive: bool) -> Callable[[tuple[str, ...]], Leaf]:
    def folded(path: tuple[str, ...]) -> tuple[str, ...]:
        return path if case_sensitive else tuple(name.lower() for name in path)

    known: dict[tuple[str, ...], list[Leaf]] = {}
    for leaf in leaves:
        known.setdefault(folded(leaf.path), []).append(leaf)

    def find(path: tuple[str, ...]) -> Leaf:
        found = known.get(folded(path), [])
        if len(found) == 1:
            return found[0]
        told = ".".join(path)
        if found:
            raise UsageError(
                f"{told!r} could be {' or '.join(repr('.'.join(leaf.path)) for leaf in found)}",
                where="filter",
                next="write the column in its own case with case_sensitive on",
            )
        raise UsageError(
            f"the table has no column {told!r} that a filter can use",
            where="filter",
            next=_nearest(told, [".".join(leaf.path) for leaf in leaves]),
        )

    return find


def _nearest(told: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    alike = get_close_matches(told.lower(), [name.lower() for name in names], 1)
    if alike:
        return f"did you mean {next(name for name in names if name.lower() == alike[0])!r}?"
    return "it has " + ", ".join(sorted(names)[:20])


_NUMBERS_ONLY = ("calendar_year", "month_of_year", "day_of_month", "hour_of_day", "bucket", "year", "month", "hour")
_ON_DATES = {"calendar_year", "month_of_year", "day_of_month", "hour_of_day", "year", "month", "day", "hour"}


def _bound_comparison(comparison: Comparison, leaf: Leaf) -> Bound:
    function, operator = comparison.function, comparison.operator
    kind = leaf.type
    if function is not None:
        _check_function(function, leaf)
        kind = "date" if function.name == "day" else "int" if function.name in _NUMBERS_ONLY else leaf.type
    if operator.endswith("_nan") and kind not in ("float", "double"):
        raise _misfit(f"{'.'.join(leaf.path)!r} is {kind} and is never NaN", "use isnan on float and double columns")
    if operator.endswith("starts_with") and kind not in ("string", "binary"):
        raise _misfit(f"{'.'.join(leaf.path)!r} is {kind}, which has no prefixes", "compare it with = or <")
    literals = tuple(literal_value(literal, kind, ".".join(leaf.path)) for literal in comparison.literals)
    nans = [value for value in literals if isinstance(value, float) and math.isnan(value)]
    if nans:
        return _about_nans(BoundComparison(leaf, operator, literals, function))
    return BoundComparison(leaf, operator, literals, function)


def _check_function(function: Function, leaf: Leaf) -> None:
    from relayout.table.layouts import transform_result_type

    wanted = function.name if function.name in ("bucket", "truncate", "year", "month", "day", "hour") else ""
    if wanted:
        transform_result_type(str(Transform(function.name, function.size)), leaf.type)
    elif function.name in _ON_DATES and leaf.type != "date" and not leaf.type.startswith("timestamp"):
        raise _misfit(f"{'.'.join(leaf.path)!r} is {leaf.type}, not a date or a time", "compare the column itself")


def _about_nans(comparison: BoundComparison) -> Bound:
    """`= NaN` as a question about NaN, as Spark answers it; an order relative to NaN is refused."""
    leaf = comparison.leaf
    numbers = tuple(value for value in comparison.literals if not math.isnan(value))
    if comparison.operator in ("eq", "in"):
        about = BoundComparison(leaf, "is_nan", (), None)
        return BoundEither((about, BoundComparison(leaf, "in", numbers, None))) if numbers else about
    if comparison.operator in ("ne", "not_in"):
        about = BoundComparison(leaf, "not_nan", (), None)
        return BoundBoth((about, BoundComparison(leaf, "not_in", numbers, None))) if numbers else about
    raise _misfit("engines disagree on what is greater than NaN", "use isnan(column)")


def _misfit(what: str, next: str) -> UsageError:
    return UsageError(what, where="filter", next=next)


def judge(bound: Bound, evidence: Callable[[int], Evidence]) -> Verdict:
    """The verdict on a file of whose columns, by field id, this much is known."""
    match bound:
        case Always(matches):
            return Verdict.MUST if matches else Verdict.CANNOT
        case BoundComparison():
            return bound.judged(evidence(bound.leaf.field_id))
        case BoundBoth(parts):
            return min((judge(part, evidence) for part in parts), default=Verdict.MUST)
        case BoundEither(parts):
            return max((judge(part, evidence) for part in parts), default=Verdict.CANNOT)


def field_ids(bound: Bound) -> frozenset[int]:
    """The columns that the predicate asks about."""
    match bound:
        case BoundComparison():
            return frozenset([bound.leaf.field_id])
        case BoundBoth(parts) | BoundEither(parts):
            return frozenset().union(*(field_ids(part) for part in parts))
        case Always():
            return frozenset()


def known_of(evidence: Mapping[int, Evidence]) -> Callable[[int], Evidence]:
    """Evidence by field id; nothing is known of columns that are not named."""
    return lambda field_id: evidence.get(field_id, ANYTHING)
