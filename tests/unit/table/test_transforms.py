"""Transforms give what Iceberg's specification says, on both sides of 1970 and for every type they take."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from relayout.table.moments import civil, day_count, period_of, period_start
from relayout.table.transforms import Transform, apply, bucket_hash, source_evidence

DAY_MICROS = 24 * 3600 * 1_000_000


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        # https://iceberg.apache.org/spec/#appendix-b-32-bit-hash-requirements
        ("int", 34, 2017239379),
        ("long", 34, 2017239379),
        ("decimal(9,2)", 1420, -500754589),
        ("date", 17486, -653330422),
        ("time", 81068000000, -662762989),
        ("timestamp", 1510871468000000, -2047944441),
        ("timestamptz", 1510871468000000, -2047944441),
        ("timestamp_ns", 1510871468000001001, -1207196810),
        ("string", "iceberg", 1210000089),
        ("uuid", uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
        ("fixed[4]", b"\x00\x01\x02\x03", -188683207),
        ("binary", b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_bucket_hashes_are_those_of_the_specification(kind: str, value: object, expected: int) -> None:
    assert bucket_hash(kind, value) == expected & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("transform", "kind", "value", "expected"),
    [
        ("truncate[10]", "int", 1, 0),
        ("truncate[10]", "int", -1, -10),
        ("truncate[10]", "long", -11, -20),
        ("truncate[50]", "decimal(9,2)", 1065, 1050),
        ("truncate[3]", "string", "iceberg", "ice"),
        ("truncate[2]", "string", "a\U0001f600b", "a\U0001f600"),
        ("truncate[3]", "binary", b"\x01\x02\x03\x04", b"\x01\x02\x03"),
        ("year", "date", -1, -1),
        ("month", "date", -1, -1),
        ("day", "timestamp", -1, -1),
        ("hour", "timestamp", -1, -1),
        ("year", "timestamp", 0, 0),
        ("identity", "string", "x", "x"),
        ("void", "string", "x", None),
    ],
)
def test_transforms_floor_and_count_code_points(transform: str, kind: str, value: object, expected: object) -> None:
    assert apply(Transform.parse(transform), kind, value) == expected


@given(some.integers(-500_000, 2_000_000))
def test_the_calendar_is_the_one_of_python(days: int) -> None:
    try:
        expected = date(1970, 1, 1) + timedelta(days=days)
    except OverflowError:
        assert day_count(*civil(days)) == days
        return
    assert civil(days) == (expected.year, expected.month, expected.day)
    assert day_count(*civil(days)) == days


@given(some.datetimes(min_value=datetime(1, 2, 1), max_value=datetime(9999, 11, 1)))  # noqa: DTZ001
def test_periods_enclose_their_moments(moment: datetime) -> None:
    micros = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    for period in ("year", "month", "day", "hour"):
        count = period_of(micros, "timestamp", period)
        assert period_start(count, "timestamp", period) <= micros < period_start(count + 1, "timestamp", period)
    assert period_of(micros, "timestamp", "month") == (moment.year - 1970) * 12 + moment.month - 1


@given(
    some.sampled_from(["identity", "year", "month", "day", "hour", "truncate[7]", "bucket[5]"]),
    some.integers(-(1 << 40), 1 << 40),
)
def test_a_partition_value_encloses_what_it_was_made_from(text: str, value: int) -> None:
    kind = "long" if text in ("identity", "truncate[7]", "bucket[5]") else "timestamp"
    transform = Transform.parse(text)
    known = source_evidence(transform, kind, apply(transform, kind, value))
    assert not known.may_have_nulls
    assert known.lower is None or known.lower <= value
    assert known.upper is None or value <= known.upper
    assert all(bucket_hash(kind, value) % count == bucket for count, bucket in known.buckets)


def test_a_day_of_a_date_is_the_date() -> None:
    assert source_evidence(Transform.parse("day"), "date", -3).only_value == -3
    assert source_evidence(Transform.parse("day"), "timestamp", 1).upper == 2 * DAY_MICROS - 1
