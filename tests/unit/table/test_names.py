from __future__ import annotations

import re

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relayout.errors import UsageError
from relayout.table.batches import BatchKey, Scalar
from relayout.table.layouts import PartitionField
from relayout.table.names import (
    TableName,
    batch_file_prefix,
    parse,
    partition_path,
    quote_duckdb,
    quote_spark,
    split_name,
)

any_text = st.text(max_size=300)
scalars: st.SearchStrategy[Scalar] = st.one_of(
    any_text,
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.sampled_from(["..", ".", "/", "../../etc/passwd"]),
)
parts = st.text(st.characters(codec="utf-8", exclude_characters="/\\", exclude_categories=["Cc"]), min_size=1).filter(
    lambda text: text not in (".", "..")
)


@pytest.mark.parametrize(
    ("text", "namespace", "table"),
    [
        ("t", ("econ",), "t"),
        ("db.t", ("db",), "t"),
        ("lake.db.t", ("db",), "t"),
        ("db.t.files", ("db", "t"), "files"),
        ("`my db`.`a.b`", ("my db",), "a.b"),
        ("lake.`x``y`.t", ("x`y",), "t"),
        (" db . t ", ("db",), "t"),
        ("lake.t", ("lake",), "t"),
    ],
)
def test_names_are_understood_with_and_without_namespace_and_catalog(
    text: str, namespace: tuple[str, ...], table: str
) -> None:
    assert parse(text, "econ", "lake") == TableName(namespace, table)


def test_a_default_namespace_may_have_several_levels() -> None:
    assert parse("t", "econ.raw", "lake").identifier == ("econ", "raw", "t")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "a.",
        ".a",
        "a..b",
        "`a",
        "a`b`",
        "``",
        "`..`.t",
        "db.`../../x`",
        "db.`a\nb`",
        "`/etc`",
        "`a\\..\\b`",
    ],
)
def test_names_that_are_empty_torn_or_lead_elsewhere_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "econ", "lake")
    assert caught.value.next


@given(parts, parts)
def test_a_written_name_is_read_back_as_the_same_table(namespace: str, table: str) -> None:
    name = TableName((namespace,), table)
    assert parse(str(name), "econ", "lake") == name
    assert parse(name.spark_sql("lake"), "econ", "lake") == name


def test_spark_names_are_quoted_part_by_part() -> None:
    assert TableName(("econ",), "a`b.c").spark_sql("lake") == "`lake`.`econ`.`a``b.c`"
    assert split_name(quote_spark("a`.`b")) == ("a`.`b",)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_duckdb_keeps_a_quoted_identifier_as_it_is(identifier: str) -> None:
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT 1 AS {quote_duckdb(identifier)}").columns == [identifier]


@given(st.lists(st.tuples(any_text.filter(bool), scalars), min_size=1, max_size=4))
@example([("..", ".."), ("a/b", "../../x")])
@example([("x" * 300, "y" * 300)])
@example([("year", "\udcff\0\n")])
def test_partition_folders_stay_where_they_belong_and_fit_any_file_system(items: list[tuple[str, Scalar]]) -> None:
    path = partition_path([name for name, _ in items], [value for _, value in items])
    segments = path.split("/")
    assert len(segments) == len(items)
    for segment in segments:
        assert len(segment.encode()) <= 120
        assert "=" in segment
        assert re.fullmatch(r"[A-Za-z0-9._*+%=-]+", segment)


@given(any_text, any_text)
@example("x" * 200, "x" * 201)
def test_different_texts_get_different_partition_folders(first: str, second: str) -> None:
    same = partition_path(["k"], [first]) == partition_path(["k"], [second])
    assert same == (first == second)


def test_partition_folders_are_named_like_icebergs() -> None:
    fields = [
        PartitionField("year"),
        PartitionField("geo"),
        PartitionField("at", "day"),
        PartitionField("at", "month"),
        PartitionField("at", "year"),
        PartitionField("at", "hour"),
        PartitionField("id", "bucket[16]"),
    ]
    values: list[Scalar] = [2020, "a/b c", 18262, 600, 50, 438293, 3]
    assert partition_path(fields, values) == (
        "year=2020/geo=a%2Fb+c/at_day=2020-01-01/at_month=2020-01/at_year=2020/at_hour=2020-01-01-05/id_bucket=3"
    )
    assert partition_path(["a", "b"], [None, True]) == "a=null/b=true"
    assert partition_path([], []) == ""
    assert partition_path([PartitionField("at", "day")], [10**9]) == "at_day=1000000000"


@given(st.lists(st.tuples(any_text, scalars), max_size=4))
@example([("_hidden", 1)])
@example([("..", None)])
def test_batch_prefixes_are_short_safe_and_never_hidden(items: list[tuple[str, Scalar]]) -> None:
    prefix = batch_file_prefix(BatchKey(tuple(items)))
    assert len(prefix) <= 80
    assert re.fullmatch(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*_)?", prefix)
    assert bool(prefix) == bool(items)


def test_batch_prefixes_are_readable_and_tell_similar_keys_apart() -> None:
    assert batch_file_prefix(BatchKey((("year", 2020),))) == "year_2020_"
    assert batch_file_prefix(BatchKey((("year", 2020), ("geo", None)))) == "year_2020_geo_null_"
    slash, space = (batch_file_prefix(BatchKey((("geo", text),))) for text in ("a/b", "a b"))
    assert slash != space
    assert re.fullmatch(r"geo_a_b-[0-9a-f]{8}_", slash)
    long_one, other = (batch_file_prefix(BatchKey((("k", "x" * length),))) for length in (200, 201))
    assert len(long_one) == 80
    assert long_one != other
