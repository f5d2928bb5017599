"""Filters: what people write, what it is bound to, and verdicts that no row contradicts."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from relayout.errors import UsageError
from relayout.table.bounds import column_evidence, summary_evidence
from relayout.table.evidence import Evidence, Verdict
from relayout.table.layouts import transform_result_type
from relayout.table.live_entries import ColumnCounts, Summary
from relayout.table.predicates import (
    Always,
    Both,
    Bound,
    BoundBoth,
    BoundComparison,
    BoundEither,
    Comparison,
    Either,
    Leaf,
    Not,
    Predicate,
    bind,
    judge,
    known_of,
)
from relayout.table.transforms import Function, Transform, apply, compute, source_evidence
from relayout.table.where import parse_where

LEAVES = (
    Leaf(1, ("id",), "long"),
    Leaf(2, ("region",), "string"),
    Leaf(3, ("ts",), "timestamp"),
    Leaf(4, ("f",), "double"),
    Leaf(5, ("d",), "date"),
    Leaf(6, ("a b", "c.d"), "int"),
    Leaf(7, ("price",), "decimal(9,2)"),
    Leaf(8, ("flag",), "boolean"),
    Leaf(9, ("raw",), "binary"),
    Leaf(10, ("tz",), "timestamptz"),
)
HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "understood"),
    [
        ("region = 'eu' and year(ts) = 2024", "region = 'eu' AND year(ts) = 2024"),
        ("'it''s' = region", "region = 'it''s'"),
        ("region = 'it' 's'", "region = 'its'"),
        ("`a b`.`c.d` between 1 and 2", "`a b`.`c.d` >= 1 AND `a b`.`c.d` <= 2"),
        ("not (id in (1, -2) or f is null)", "NOT (id IN (1, -2) OR f IS NULL)"),
        ("region like 'ab%'", "startswith(region, 'ab')"),
        ("region like 'a\\\\_b'", "region = 'a_b'"),
        ("cast(ts as date) = date '2024-01-31'", "days(ts) = '2024-01-31'"),
        ("day(ts) = '2024-01-31'", "days(ts) = '2024-01-31'"),
        ("day(ts) = 31", "dayofmonth(ts) = 31"),
        ("lake.system.bucket(16, id) = 3", "bucket(16, id) = 3"),
        ("truncate(region, 3) = 'abc'", "truncate(3, region) = 'abc'"),
        ("left(region, 3) = 'abc'", "truncate(3, region) = 'abc'"),
        ("flag and not flag", "flag = True AND NOT (flag = True)"),
        ("raw = X'0AFF'", "raw = X'0aff'"),
        ("id <=> null", "id IS NULL"),
        ("true", "true"),
        ("id = 1 -- and nothing else", "id = 1"),
    ],
)
def test_a_filter_is_understood_and_its_text_means_the_same(text: str, understood: str) -> None:
    predicate = parse_where(text)
    assert str(predicate) == understood
    assert bind(parse_where(understood), LEAVES) == bind(predicate, LEAVES)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("id = 1; drop table t", "not one condition"),
        ("id = 1 group by id", "goes on with group"),
        ("id = 1 union select 2", "not one condition"),
        ("id = f", "compared with a literal"),
        ("id + 1 = 3", "compares a column"),
        ("region like '%x'", "only a prefix"),
        ("region = null", "IS NULL"),
        ("id in (1, null)", "IS NULL"),
        ("id in (select 1)", "cannot be chosen"),
        ("upper(region) = 'EU'", "compares a column"),
        ("id =", "not valid SQL"),
        ("", "not valid SQL"),
    ],
)
def test_what_cannot_be_expressed_is_refused_with_a_way_out(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as refused:
        parse_where(text)
    assert refused.value.next


@pytest.mark.parametrize(
    "text",
    [
        "nothing = 1",
        "ID = 1",
        "id = '1'",
        "region = 1",
        "ts = 5",
        "ts = 'yesterday'",
        "ts = '2024-01-01T00:00:00+02:00'",
        "d = '2024-02-30'",
        "d = '2024-01-01 12:00:00'",
        "flag = 1",
        "year(region) = 2024",
        "hours(d) = 3",
        "bucket(4, f) = 1",
        "isnan(id)",
        "startswith(id, '1')",
        "f > double('nan')",
        "price = 'x'",
    ],
)
def test_an_unknown_field_or_a_type_that_does_not_fit_is_an_error(text: str) -> None:
    with pytest.raises(UsageError):
        bind(parse_where(text), LEAVES)


def test_case_can_be_ignored_and_ambiguity_is_told() -> None:
    assert bind(parse_where("ID = 1"), LEAVES, case_sensitive=False) == bind(parse_where("id = 1"), LEAVES)
    twice = (*LEAVES, Leaf(11, ("Id",), "long"))
    with pytest.raises(UsageError, match=r"could be 'id' or 'Id'"):
        bind(parse_where("iD = 1"), twice, case_sensitive=False)


def test_a_long_chain_is_no_problem() -> None:
    text = " or ".join(f"id = {number}" for number in range(3_000))
    bound = bind(parse_where(text), LEAVES)
    assert judge(bound, known_of({1: Evidence(lower=2_999, upper=5_000)})) is Verdict.MIGHT
    assert judge(bound, known_of({1: Evidence(lower=3_000, upper=5_000)})) is Verdict.CANNOT


def test_decimal_literals_finer_than_the_column_fall_between_its_values() -> None:
    bound = bind(parse_where("price > 1.005"), LEAVES)
    assert judge(bound, known_of({7: Evidence(False, True, False, 101, 300)})) is Verdict.MUST
    assert judge(bound, known_of({7: Evidence(False, True, False, 1, 100)})) is Verdict.CANNOT
    assert (
        judge(bind(parse_where("price = 1.005"), LEAVES), known_of({7: Evidence(lower=1, upper=100)})) is Verdict.CANNOT
    )


def test_zones_count() -> None:
    bound = bind(parse_where("tz = '2024-01-01 02:00:00+02:00'"), LEAVES)
    assert isinstance(bound, BoundComparison)
    assert bound.literals == (19723 * 24 * HOUR,)


# Verdicts against rows. A file is a handful of values per column; what is known of it is made as writers make it.

ROWS = some.fixed_dictionaries(
    {
        1: some.none() | some.integers(-40, 40),
        2: some.none() | some.text("ab\U0001f600\U0010ffff", max_size=4),
        3: some.none() | some.integers(-30_000, 30_000).map(lambda hours: hours * HOUR + 1),
        4: some.none() | some.sampled_from([-1.5, -0.0, 0.0, 2.0, math.nan]),
    }
)
FILES = some.lists(ROWS, min_size=1, max_size=4)
KINDS = {leaf.field_id: leaf.type for leaf in LEAVES}
OPERATORS = some.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"])


def comparisons() -> some.SearchStrategy[Predicate]:
    numbers = some.integers(-45, 45)
    texts = some.text("ab\U0001f600", max_size=4)
    moments = some.integers(-31_000, 31_000).map(lambda hours: f"{1970 + hours // 8766:04d}-01-01T00:00:00")
    return some.one_of(
        some.builds(lambda op, value: Comparison(("id",), op, (value,)), OPERATORS, numbers),
        some.builds(
            lambda values: Comparison(("id",), "in", tuple(values)), some.lists(numbers, min_size=1, max_size=3)
        ),
        some.builds(lambda op, value: Comparison(("region",), op, (value,)), OPERATORS, texts),
        some.builds(lambda value: Comparison(("region",), "starts_with", (value,)), texts),
        some.builds(lambda op, value: Comparison(("ts",), op, (value,)), OPERATORS, moments),
        some.builds(lambda op, value: Comparison(("f",), op, (value,)), OPERATORS, some.sampled_from([-2.0, 0.0, 2.0])),
        some.builds(
            lambda op, value: Comparison(("ts",), op, (value,), Function("calendar_year")),
            OPERATORS,
            some.integers(1966, 1974),
        ),
        some.builds(
            lambda op, value: Comparison(("ts",), op, (value,), Function("month_of_year")),
            OPERATORS,
            some.integers(1, 12),
        ),
        some.builds(
            lambda op, value: Comparison(("id",), op, (value,), Function("bucket", 4)), OPERATORS, some.integers(0, 3)
        ),
        some.builds(lambda op, value: Comparison(("region",), op, (value,), Function("truncate", 2)), OPERATORS, texts),
        some.builds(
            lambda path, op: Comparison((path,), op),
            some.sampled_from(["id", "region", "f"]),
            some.sampled_from(["is_null"]),
        ),
        some.just(Comparison(("f",), "is_nan")),
    )


PREDICATES = some.recursive(
    comparisons() | some.builds(Always, some.booleans()),
    lambda inner: (
        some.builds(Not, inner)
        | some.builds(lambda parts: Both(tuple(parts)), some.lists(inner, min_size=1, max_size=3))
        | some.builds(lambda parts: Either(tuple(parts)), some.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)
SPECS = some.lists(
    some.sampled_from(
        [
            (1, "identity"),
            (1, "bucket[8]"),
            (1, "bucket[6]"),
            (1, "truncate[10]"),
            (2, "truncate[2]"),
            (2, "identity"),
            (3, "year"),
            (3, "month"),
            (3, "hour"),
            (4, "identity"),
            (2, "void"),
            (1, "unknown-one"),
        ]
    ),
    max_size=3,
)


def matches(bound: Bound, row: dict[int, Any]) -> bool:
    """Whether the row matches, by SQL's rules; NaN is equal to itself and greater than every number, as in Spark."""
    match bound:
        case Always(matches=answer):
            return answer
        case BoundBoth(parts):
            return all(matches(part, row) for part in parts)
        case BoundEither(parts):
            return any(matches(part, row) for part in parts)
    value = row[bound.leaf.field_id]
    if bound.operator in ("is_null", "not_null"):
        return (value is None) == (bound.operator == "is_null")
    if value is None:
        return False
    value = value if bound.function is None else compute(bound.function, bound.leaf.type, value)
    is_nan = isinstance(value, float) and math.isnan(value)
    if bound.operator.endswith("_nan"):
        return is_nan == (bound.operator == "is_nan")
    if is_nan:
        return bound.operator in ("gt", "ge", "ne", "not_in")
    tests: dict[str, Callable[[Any], bool]] = {
        "lt": lambda literal: value < literal,
        "le": lambda literal: value <= literal,
        "gt": lambda literal: value > literal,
        "ge": lambda literal: value >= literal,
        "eq": lambda literal: value == literal,
        "in": lambda literal: value == literal,
        "ne": lambda literal: value == literal,
        "not_in": lambda literal: value == literal,
        "starts_with": lambda literal: str(value).startswith(literal),
        "not_starts_with": lambda literal: str(value).startswith(literal),
    }
    found = any(tests[bound.operator](literal) for literal in bound.literals)
    return found != (bound.operator in ("ne", "not_in", "not_starts_with"))


def partition_evidence(rows: list[dict[int, Any]], spec: list[tuple[int, str]]) -> dict[int, Evidence] | None:
    """What a spec's tuple says of the rows, or None where they would lie in several partitions."""
    known: dict[int, Evidence] = {}
    for column, text in spec:
        transform = Transform.parse(text)
        if transform.name == "unknown":
            continue
        values = [apply(transform, KINDS[column], row[column]) for row in rows]
        if len({repr(value) for value in values}) > 1:
            return None
        told = source_evidence(transform, KINDS[column], values[0])
        known[column] = told.narrowed_by(known[column]) if column in known else told
    return known


def statistics(rows: list[dict[int, Any]]) -> dict[int, Evidence]:
    """What exact statistics say of the rows; texts and numbers in their binary form."""
    known: dict[int, Evidence] = {}
    for column in (1, 2, 3, 4):
        values = [row[column] for row in rows if row[column] is not None]
        numbers = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
        counts = ColumnCounts(
            {column: len(rows)},
            {column: len(rows) - len(values)},
            {column: len(values) - len(numbers)},
            {column: binary(min(numbers), KINDS[column])} if numbers else {},
            {column: binary(max(numbers), KINDS[column])} if numbers else {},
        )
        known[column] = column_evidence(counts, column, KINDS[column], required=False)
    return known


def summaries(rows: list[dict[int, Any]], spec: list[tuple[int, str]]) -> dict[int, Evidence]:
    """What a manifest says whose files hold one of the rows each."""
    known: dict[int, Evidence] = {}
    for column, text in spec:
        transform = Transform.parse(text)
        if transform.name == "unknown":
            continue
        result = transform_result_type(text, KINDS[column])
        values = [apply(transform, KINDS[column], row[column]) for row in rows]
        numbers = [value for value in values if value is not None and value == value]
        told = summary_evidence(
            Summary(
                None in values,
                any(value != value for value in values if value is not None),
                binary(min(numbers), result) if numbers else None,
                binary(max(numbers), result) if numbers else None,
            ),
            transform,
            KINDS[column],
            result,
        )
        known[column] = told.narrowed_by(known[column]) if column in known else told
    return known


def binary(value: Any, kind: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return struct.pack({"double": "<d", "long": "<q", "timestamp": "<q"}.get(kind, "<i"), value)


def check(bound: Bound, rows: list[dict[int, Any]], known: dict[int, Evidence]) -> None:
    verdict = judge(bound, known_of(known))
    found = [matches(bound, row) for row in rows]
    assert not (verdict is Verdict.CANNOT and any(found)), (bound, rows, known)
    assert not (verdict is Verdict.MUST and not all(found)), (bound, rows, known)


@given(FILES, PREDICATES, SPECS)
def test_no_row_contradicts_a_verdict(
    rows: list[dict[int, Any]], predicate: Predicate, spec: list[tuple[int, str]]
) -> None:
    bound = bind(predicate, LEAVES)
    told = statistics(rows)
    check(bound, rows, told)
    # A table's partition holds rows that agree in the tuple; so the first row's partition stands for a file of it.
    for row in rows:
        known = partition_evidence([row], spec)
        assert known is not None
        check(bound, [row], known)
        both = {column: told[column].narrowed_by(known.get(column, Evidence())) for column in told}
        check(bound, [row], {column: statistics([row])[column].narrowed_by(both[column]) for column in told})
    check(bound, rows, summaries(rows, spec))
    together = partition_evidence(rows, spec)
    if together is not None:
        check(bound, rows, together)
