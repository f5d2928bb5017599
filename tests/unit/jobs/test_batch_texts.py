"""Naming batches in a command: values are read as their columns' types, and nothing that is meant is out of reach."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.errors import UsageError
from relayout.jobs.batch_texts import named_batches
from relayout.table.batches import BatchKey, Scalar

MONTHS = [BatchKey((("year", year), ("month", month))) for year in (2020, 2021) for month in (1, 2, 10)]
TYPES = {"year": "int", "month": "int", "city": "string", "day": "date", "price": "decimal(4,2)", "open": "boolean"}


def named(loaded: Sequence[BatchKey], *texts: str) -> list[str]:
    return [str(key) for key in named_batches(texts, "income", loaded, TYPES)]


def of(column: str, *values: Scalar) -> list[BatchKey]:
    return [BatchKey(((column, value),)) for value in values]


def refused(loaded: Sequence[BatchKey], text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        named(loaded, text)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "year=2020,month=2",
        "month=2,year=2020",
        " year = 2020 , month = 02 ",
        "{year=2020, month=2}",
        '{"year": 2020, "month": 2}',
        '{"month": "2", "year": "2020"}',
    ],
)
def test_a_batch_is_named_by_its_values_in_any_order_and_form(text: str) -> None:
    assert named(MONTHS, text) == ["{year=2020, month=2}"]


def test_some_of_the_columns_name_every_batch_with_these_values() -> None:
    assert named(MONTHS, "month=2") == ["{year=2020, month=2}", "{year=2021, month=2}"]
    assert named(MONTHS, "year=2021", "month=2") == [
        "{year=2020, month=2}",
        "{year=2021, month=1}",
        "{year=2021, month=2}",
        "{year=2021, month=10}",
    ]


@pytest.mark.parametrize("text", ["{all}", "{}"])
def test_no_columns_name_every_batch(text: str) -> None:
    assert named([BatchKey()], text) == ["{all}"]
    assert len(named(MONTHS, text)) == 6


def test_a_batch_that_two_texts_mean_is_named_once() -> None:
    assert named(MONTHS, "year=2020,month=1", '{"year":2020,"month":1}') == ["{year=2020, month=1}"]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("city", "01001", "city=01001"),
        ("city", "", "city="),
        ("city", "a=b", "city=a=b"),
        ("city", "Paris, TX", '{"city": "Paris, TX"}'),
        ("city", " x ", '{"city": " x "}'),
        ("city", '"quoted"', 'city="quoted"'),
        ("city", "null", '{"city": "null"}'),
        ("city", None, "city=null"),
        ("city", None, '{"city": null}'),
        ("city", "2020", '{"city": 2020}'),
        ("day", "2020-01-31", "day=2020-01-31"),
        ("price", "1.10", "price=1.1"),
        ("price", "1.10", '{"price": 1.1}'),
        ("open", True, "open=TRUE"),
        ("open", True, '{"open": true}'),
        ("gone", 7, "gone=07"),
        ("gone", 0.5, "gone=.5"),
        ("gone", False, "gone=false"),
        ("gone", "07", "gone=07"),
    ],
)
def test_values_of_every_type_can_be_named(column: str, value: Scalar, text: str) -> None:
    key = BatchKey(((column, value),))
    assert named_batches([text], "income", [key], TYPES) == [key]


def test_null_and_the_word_null_are_two_batches() -> None:
    both = of("city", None, "null")
    assert named_batches(["city=null"], "income", both, TYPES) == both[:1]
    assert named_batches(['{"city": "null"}'], "income", both, TYPES) == both[1:]


def test_an_unknown_column_is_refused_with_the_nearest_one() -> None:
    error = refused(MONTHS, "yaer=2020")
    assert (error.what, error.next) == ("'yaer' is no batch column of income", "did you mean 'year'?")
    assert refused(MONTHS, "zzz=1").next == "batch columns: year, month"
    assert refused([BatchKey()], "year=2020").next == "the whole table is one batch, {all}"


def test_a_batch_that_is_not_loaded_is_refused_with_the_loaded_ones() -> None:
    error = refused(of("year", 2020, 2021), "year=2031")
    assert error.what == "income has no loaded batch like that"
    assert error.where == "batch year=2031"
    assert error.next == "loaded: {year=2020}, {year=2021}"


def test_of_very_many_loaded_batches_the_most_similar_are_shown() -> None:
    error = refused(of("year", *range(1000, 4200)), "year=20201")
    assert error.next.startswith("the most like it of 3,200 loaded ones: {year=")
    assert "{year=2020}" in error.next
    assert error.next.count("{") == 5


def test_where_nothing_is_loaded_the_error_says_so() -> None:
    assert refused([], "year=2020").next == "nothing is loaded; `relayout plan` shows what could be"


def test_a_value_that_the_column_cannot_hold_is_refused_with_one_it_holds() -> None:
    error = refused(MONTHS, "year=twenty")
    assert error.what == "year: 'twenty' is not a value of type int: not a whole number"
    assert error.next == "a loaded batch is {year=2020, month=1}"


@pytest.mark.parametrize("text", ["", "2020", "year", "=2020", "year=2020,", "{year=2020", "{", '{"": 1}'])
def test_what_names_no_column_is_refused(text: str) -> None:
    assert isinstance(refused(MONTHS, text), UsageError)


@pytest.mark.parametrize("text", ["year=2020,year=2021", '{"year": 2020, "year": 2021}'])
def test_a_column_may_be_named_once(text: str) -> None:
    assert refused(MONTHS, text).what.endswith("names 'year' twice")


@pytest.mark.parametrize("text", ['{"year": [2020]}', '{"year": {"from": 2020}}'])
def test_a_value_is_one_value(text: str) -> None:
    assert refused(MONTHS, text).what == "the value of 'year' is not a single value"


COLUMNS = st.text(min_size=1, max_size=6)
VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8)


@given(st.dictionaries(COLUMNS, VALUES, max_size=3), st.dictionaries(COLUMNS, VALUES, max_size=3))
def test_the_json_of_a_key_names_it_whatever_it_holds(one: dict[str, Scalar], other: dict[str, Scalar]) -> None:
    keys = list(dict.fromkeys([BatchKey(tuple(one.items())), BatchKey(tuple(other.items()))]))
    assert keys[0] in named_batches([keys[0].to_json()], "income", keys, {})
    assert keys[0] in named_batches([json.dumps(dict(keys[0].items))], "income", keys, {})
