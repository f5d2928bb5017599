from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relayout.errors import UsageError
from relayout.table.batches import BatchKey
from relayout.table.types import from_text, plain, sql_literal

texts = st.text(st.characters(codec="utf-8"), max_size=30)
typed_values: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("int"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("float"), st.floats(width=32)),
    st.tuples(st.just("double"), st.floats()),
    st.tuples(st.just("decimal(18,2)"), st.decimals(-(10**15), 10**15, places=2)),
    st.tuples(st.just("date"), st.dates()),
    st.tuples(st.just("time"), st.times()),
    st.tuples(st.just("timestamp"), st.datetimes()),
    st.tuples(st.just("timestamptz"), st.datetimes(datetime(2, 1, 1), timezones=st.just(UTC))),  # noqa: DTZ001
    st.tuples(st.just("string"), texts),
    st.tuples(st.just("uuid"), st.uuids()),
    st.tuples(st.just("binary"), st.binary(max_size=9)),
    st.tuples(st.just("fixed[3]"), st.binary(min_size=3, max_size=3)),
    st.tuples(st.sampled_from(["long", "string", "date", "binary", "decimal(4,1)"]), st.none()),
)


@given(typed_values)
def test_plain_values_survive_text_json_and_being_made_plain_again(typed: tuple[str, Any]) -> None:
    type, value = typed
    made = plain(value, type)
    assert plain(made, type) == made
    assert from_text(None if made is None else str(made), type) == made
    key = BatchKey.of(["k"], [made])
    assert BatchKey.from_json(key.to_json()) == key
    assert json.loads(key.to_json()) == {"k": made}


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (Decimal("1.5"), "decimal(10,2)", "1.50"),
        (Decimal("-0"), "decimal(10,2)", "0.00"),
        (7, "decimal(3,0)", "7"),
        (date(2020, 1, 31), "date", "2020-01-31"),
        (datetime(2020, 1, 31, 5, tzinfo=timezone(timedelta(hours=2))), "timestamptz", "2020-01-31T03:00:00+00:00"),
        (datetime(5, 1, 1, 0, 0, 0, 7), "timestamp", "0005-01-01T00:00:00.000007"),  # noqa: DTZ001
        (time(1, 2), "time", "01:02:00"),
        (float("nan"), "double", "NaN"),
        (float("-inf"), "double", "-Infinity"),
        (b"\x00\xff", "binary", "00ff"),
        (uuid.UUID(int=1), "uuid", "00000000-0000-0000-0000-000000000001"),
        (pa.scalar(5, pa.int16()), "int", 5),
        (pa.scalar(1_500, pa.timestamp("us")), "timestamp", "1970-01-01T00:00:00.001500"),
        (pa.scalar(7, pa.timestamp("ns")), "timestamp_ns", "1970-01-01T00:00:00.000000007"),
        (pa.array([1.5])[0], "double", 1.5),
        (pa.array([1.5]).to_numpy()[0], "double", 1.5),
        (None, "null", None),
    ],
)
def test_plain(value: Any, type: str, expected: Any) -> None:
    assert plain(value, type) == expected


def test_a_negative_zero_is_the_key_zero() -> None:
    assert str(plain(-0.0, "double")) == "0.0"


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (True, "int"), (1, "boolean"), (2**31, "int"), (2**63, "long"), (1, "string"), ("x", "int"), (1.5, "long"),
        (datetime(2020, 1, 1), "timestamptz"), (datetime(2020, 1, 1, tzinfo=UTC), "timestamp"),  # noqa: DTZ001
        (datetime(2020, 1, 1), "date"), (Decimal("1.005"), "decimal(10,2)"), (Decimal(100), "decimal(2,0)"),  # noqa: DTZ001
        (b"ab", "fixed[3]"), (1e300, "float"), ([1], "list<long>"), ({"a": 1}, "struct<a: int>"), (0.5, "decimal(3,1)"),
        (pa.scalar(7, pa.timestamp("ns")), "timestamp"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(value: Any, type: str) -> None:
    with pytest.raises(UsageError):
        plain(value, type)


@pytest.mark.parametrize(
    ("text", "type", "expected"),
    [
        ("2020", "int", 2020), ("01", "int", 1), ("01", "string", "01"), ("", "string", ""), ("TRUE", "boolean", True),
        ("2020-01-31", "date", "2020-01-31"), ("1.5", "double", 1.5), ("1e2", "decimal(5,1)", "100.0"),
        ("2020-01-31 10:00", "timestamp", "2020-01-31T10:00:00"), ("2020-01-31", "timestamp", "2020-01-31T00:00:00"),
        ("2020-01-31T10:00:00.5+0200", "timestamptz", "2020-01-31T08:00:00.500000+00:00"),
        ("2020-01-31T10:00:00", "timestamptz", "2020-01-31T10:00:00+00:00"), (None, "int", None),
    ],
)  # fmt: skip
def test_path_texts_become_typed_values(text: str | None, type: str, expected: Any) -> None:
    found = from_text(text, type)
    assert found == expected
    assert found.__class__ is expected.__class__


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("", "int"), ("CAINC1", "int"), ("1_000", "int"), ("٣", "int"), ("1.0", "int"), ("3000000000", "int"),
        ("2020-02-30", "date"), ("20200131", "date"), ("2020-1-1", "date"), ("yes", "boolean"), ("1,5", "double"),
        ("1.234", "decimal(5,2)"), ("1e999", "decimal(5,2)"), ("25:00", "time"), ("2020-01-01T00:00:00Z", "timestamp"),
        ("2020-01-01T00:00:00.1234567", "timestamp"), ("2020-01-01T24:61:00", "timestamp"), ("x", "null"),
        (" 1", "int"), ("zz", "binary"), ("not-a-uuid", "uuid"), ("1", "list<int>"),
        ("0001-01-01T00:00:00+05:00", "timestamptz"),
    ],
)  # fmt: skip
def test_path_texts_that_do_not_parse_raise_value_error(text: str, type: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        from_text(text, type)


@given(typed_values)
@example(("string", 'it\'s \\ a "test"\n\x00 $ {x} -- ; 😀'))
@settings(max_examples=60, deadline=None)
def test_duckdb_reads_back_exactly_the_value_that_was_written(typed: tuple[str, Any]) -> None:
    type, value = typed
    made = plain(value, type)
    literal = sql_literal(made, type, "duckdb")
    with duckdb.connect() as connection:
        read = connection.sql(f"SELECT {literal} AS v").to_arrow_table().column(0)
    assert len(read) == 1
    assert plain(read[0], type) == made


@pytest.mark.parametrize("type", ["timestamptz_ns", "timestamp_ns", "decimal(38,10)", 'struct<`a"b`: list<long>>'])
def test_duckdb_types_a_null_literal(type: str) -> None:
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT {sql_literal(None, type, 'duckdb')} AS v").fetchall() == [(None,)]


@given(texts)
@example("'; DROP TABLE t; --")
@example("\\")
@example("${spark.app.name}")
@example("línea\u2028")
def test_spark_strings_mean_the_same_under_every_parser_setting(text: str) -> None:
    literal = sql_literal(text, "string", "spark")
    as_bytes = re.fullmatch(r"CAST\(X'((?:[0-9A-F]{2})*)' AS STRING\)", literal)
    if as_bytes:
        assert bytes.fromhex(as_bytes[1]).decode() == text
    else:
        assert literal == f"'{text}'"
        assert not set(text) & set("'\"\\$`\n\r\0")


@pytest.mark.parametrize(
    ("value", "type", "literal"),
    [
        (None, "string", "CAST(NULL AS STRING)"),
        (5, "int", "CAST(5 AS INT)"),
        (True, "boolean", "TRUE"),
        ("1.50", "decimal(10,2)", "CAST('1.50' AS DECIMAL(10,2))"),
        ("2020-01-31", "date", "CAST('2020-01-31' AS DATE)"),
        ("2020-01-31T00:00:00", "timestamp", "CAST('2020-01-31T00:00:00' AS TIMESTAMP_NTZ)"),
        ("2020-01-31T00:00:00+00:00", "timestamptz", "CAST('2020-01-31T00:00:00+00:00' AS TIMESTAMP)"),
        ("NaN", "double", "CAST('NaN' AS DOUBLE)"),
        ("00ff", "binary", "X'00ff'"),
        ("São Paulo", "string", "'São Paulo'"),
        ("O'Brien", "string", "CAST(X'4F27427269656E' AS STRING)"),
    ],
)
def test_spark_literals(value: Any, type: str, literal: str) -> None:
    assert sql_literal(value, type, "spark") == literal


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_text_in_a_number_column_never_reaches_the_sql(dialect: Any) -> None:
    with pytest.raises(UsageError):
        sql_literal("1 OR 1=1", "int", dialect)
    with pytest.raises(UsageError):
        sql_literal("'; drop", "binary", dialect)
    with pytest.raises(UsageError, match="Unicode"):
        sql_literal("a\udcff", "string", dialect)
