"""Query results in the three formats of `relayout sql`."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from relayout.report.rows_text import MEASURED_ROWS, cell_text, rows_csv, rows_json, rows_table

texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(["", '"', "a,b", "\r\n", " x ", "NULL"])
scalars = st.one_of(
    st.none(), texts, st.booleans(), st.integers(), st.floats(), st.decimals(places=2, allow_nan=False), st.dates()
)


@st.composite
def results(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]]]:
    width = draw(st.integers(1, 4))
    columns = draw(st.lists(texts, min_size=width, max_size=width))
    return columns, draw(st.lists(st.tuples(*[scalars] * width), max_size=6))


def table_text(columns: list[str], rows: list[tuple[Any, ...]], width: int | None = None) -> str:
    return "".join(rows_table(columns, rows, width))


def csv_text(columns: list[str], rows: list[tuple[Any, ...]]) -> str:
    return "".join(rows_csv(columns, rows))


# CSV.


@given(results())
def test_csv_parsed_back_has_the_same_cells(result: tuple[list[str], list[tuple[Any, ...]]]) -> None:
    columns, rows = result
    header, *lines = csv.reader(io.StringIO(csv_text(columns, rows), newline=""))
    # An empty line is one null; Python's reader makes it a row without cells.
    assert header == columns
    assert [line or [""] for line in lines] == [
        ["" if value is None else cell_text(value) for value in row] for row in rows
    ]


def test_csv_tells_null_from_the_empty_text() -> None:
    assert csv_text(["a", "b"], [(None, ""), ("", None), (None, None)]) == 'a,b\n,""\n"",\n,\n'
    assert csv_text(["a"], [(None,), ("",)]) == 'a\n\n""\n'


def test_another_reader_of_csv_finds_the_same_nulls_and_texts(tmp_path: Path) -> None:
    rows = [("1", None), ("", 'say "x", twice'), ("two\nlines", ""), ("ünï", " kept ")]
    file = tmp_path / "rows.csv"
    file.write_text(csv_text(["a", "b"], rows), "utf-8", newline="")
    options = "header=true, all_varchar=true, quote='\"', escape='\"', delim=',', nullstr='', allow_quoted_nulls=false"
    assert duckdb.sql(f"FROM read_csv('{file}', {options})").fetchall() == rows


def test_csv_has_a_header_line_also_without_rows() -> None:
    assert csv_text(["year", "my, column"], []) == 'year,"my, column"\n'
    assert csv_text([], []) == ""


# JSON.


@given(results())
def test_json_parses_back_to_the_same_values(result: tuple[list[str], list[tuple[Any, ...]]]) -> None:
    columns, rows = result

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document = json.loads("".join(rows_json(columns, rows)), parse_constant=refuse)
    told = (str, int, float, bool, type(None))
    assert document == {
        "schema": 1,
        "columns": columns,
        "rows": [
            [
                value if isinstance(value, told) and cell_text(value) not in ("NaN", "Infinity", "-Infinity")
                else cell_text(value)
                for value in row
            ]
            for row in rows
        ],
    }  # fmt: skip


def test_each_row_of_json_stands_on_its_own_line() -> None:
    assert "".join(rows_json(["a", "b"], [(1, "x"), (2, None)])) == (
        '{"schema": 1, "columns": ["a", "b"], "rows": [\n[1, "x"],\n[2, null]\n]}\n'
    )
    assert "".join(rows_json(["a"], [])) == '{"schema": 1, "columns": ["a"], "rows": []}\n'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.50"), "1.50"),
        (Decimal("0E-10"), "0.0000000000"),
        (Decimal("1E+3"), "1000"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (0.1, 0.1),
        (2**70, 2**70),
        (True, True),
        (date(2020, 1, 31), "2020-01-31"),
        (datetime(2020, 1, 31, 5, 0, 0, 7), "2020-01-31T05:00:00.000007"),  # noqa: DTZ001
        (datetime(2020, 1, 31, 5, tzinfo=UTC), "2020-01-31T05:00:00+00:00"),
        (datetime(2020, 1, 31, 5, tzinfo=timezone(timedelta(hours=2))), "2020-01-31T05:00:00+02:00"),
        (bytearray(b"\x00\xff"), "00ff"),
        (b"", ""),
        (Row(year=2020, place=Row(fips="01001", size=None)), {"year": 2020, "place": {"fips": "01001", "size": None}}),
        ([Row(a=1), None], [{"a": 1}, None]),
        ({"k": Decimal("1.5")}, {"k": "1.5"}),
        ({1: "x", 2: float("nan")}, [[1, "x"], [2, "NaN"]]),
        ({date(2020, 1, 1): 1}, [["2020-01-01", 1]]),
        ({}, {}),
        (timedelta(days=1, seconds=2), "1 day, 0:00:02"),
    ],
)
def test_values_of_spark_become_values_of_json(value: Any, expected: Any) -> None:
    assert json.loads("".join(rows_json(["c"], [(value,)])))["rows"] == [[expected]]


def test_a_struct_with_one_name_twice_loses_nothing() -> None:
    twice = Row("a", "a")(1, 2)
    assert json.loads("".join(rows_json(["c"], [(twice,)])))["rows"] == [[[["a", 1], ["a", 2]]]]


# Tables.


def test_a_table_aligns_numbers_right_and_shows_nulls() -> None:
    rows = [("01001", 7, Decimal("1.50"), True), (None, 1_200, None, False)]
    assert table_text(["fips", "n", "share", "ok"], rows) == (
        "fips      n  share  ok\n"
        "-----  ----  -----  -----\n"
        "01001     7   1.50  true\n"
        "NULL   1200   NULL  false\n"
    )  # fmt: skip


def test_a_table_shows_nested_values_as_json() -> None:
    lines = table_text(["s", "l"], [(Row(a=1, b=None), [1.5, float("nan")])]).splitlines()
    assert lines[2] == '{"a": 1, "b": null}  [1.5, "NaN"]'


def test_without_a_width_nothing_is_cut_with_one_the_widest_column_is() -> None:
    rows = [("x" * 200, 1)]
    assert table_text(["text", "n"], rows).splitlines()[2] == "x" * 200 + "  1"
    assert table_text(["text", "n"], rows, 20).splitlines()[2] == "x" * 16 + "…  1"


def test_rows_behind_the_measured_ones_are_shown_whole() -> None:
    rows = [("x", 1)] * MEASURED_ROWS + [("longer than the others", 22)]
    assert table_text(["c", "n"], rows).splitlines()[-1] == "longer than the others  22"


def test_a_result_without_columns_is_no_table() -> None:
    assert table_text([], []) == ""


def test_a_table_without_rows_is_its_header() -> None:
    assert table_text(["year"], []) == "year\n----\n"


def test_wide_characters_keep_their_place() -> None:
    assert table_text(["c", "n"], [("東京", 1), ("ab", 2)]).splitlines()[2:] == ["東京  1", "ab    2"]


@given(results())
def test_a_table_has_one_printable_line_per_row(result: tuple[list[str], list[tuple[Any, ...]]]) -> None:
    columns, rows = result
    lines = table_text(columns, rows).split("\n")
    assert len(lines) == len(rows) + 3
    assert all(line.isprintable() for line in lines)


# All of them stream.


@pytest.mark.parametrize("write", [rows_table, rows_csv, rows_json])
def test_endless_results_can_be_begun(write: Any) -> None:
    endless = ((number,) for number in itertools.count())
    pieces = list(itertools.islice(write(["n"], endless), 10))
    assert len(pieces) == 10


@pytest.mark.parametrize("write", [rows_table, rows_csv, rows_json])
def test_a_query_that_fails_fails_before_anything_is_printed(write: Any) -> None:
    def failing() -> Iterator[tuple[int]]:
        raise RuntimeError("the query failed")
        yield (1,)

    with pytest.raises(RuntimeError):
        next(write(["n"], failing()))
