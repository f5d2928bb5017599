from __future__ import annotations

import functools

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayout.errors import UsageError
from relayout.table import types

FIXED_SIZE = [
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
    "timestamptz_ns", "string", "uuid", "binary", "null",
]  # fmt: skip
decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"decimal({p},{s})"))
primitives = st.sampled_from(FIXED_SIZE) | decimals | st.integers(1, 99).map(lambda length: f"fixed[{length}]")
field_names = st.sampled_from(["a", "b", "c", "d"])
odd_names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def nested(leaves: st.SearchStrategy[str], names: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        structs = st.dictionaries(names, inner, min_size=1, max_size=4).map(
            lambda fields: "struct<" + ", ".join(f"{quoted(name)}: {type}" for name, type in fields.items()) + ">"
        )
        return structs | inner.map("list<{}>".format) | inner.map("map<string, {}>".format)

    return st.recursive(leaves, wider, max_leaves=6).map(types.parse_type)


mergeable = nested(
    st.sampled_from(["null", "int", "long", "double", "string", "fixed[2]", "binary"]) | decimals, field_names
)
any_type = nested(primitives, odd_names)


def merge_all(*texts: str | None) -> str | None:
    return functools.reduce(lambda a, b: None if a is None or b is None else types.merged(a, b), texts)


def in_any_field_order(text: str | None) -> str | None:
    return None if text is None else types.with_sorted_fields(text)


@given(mergeable)
def test_a_type_merged_with_itself_or_with_nothing_seen_stays_as_it_is(text: str) -> None:
    assert types.merged(text, text) == text
    assert types.merged(text, "null") == types.merged("null", text) == text


@given(mergeable, mergeable)
def test_merging_does_not_depend_on_which_file_comes_first(first: str, second: str) -> None:
    assert in_any_field_order(types.merged(first, second)) == in_any_field_order(types.merged(second, first))


@given(mergeable, mergeable, mergeable)
@settings(max_examples=300)
def test_merging_does_not_depend_on_how_files_are_grouped(first: str, second: str, third: str) -> None:
    assert merge_all(merge_all(first, second), third) == merge_all(first, merge_all(second, third))


@given(mergeable, mergeable)
def test_a_merged_type_absorbs_both_of_its_parts(first: str, second: str) -> None:
    both = types.merged(first, second)
    if both is not None:
        assert types.merged(both, first) == types.merged(both, second) == both


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("int", "long", "long"),
        ("long", "double", "double"),
        ("int", "float", "double"),
        ("long", "decimal(5,2)", "decimal(21,2)"),
        ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
        ("long", "decimal(38,30)", None),
        ("decimal(10,2)", "double", None),
        ("string", "long", None),
        ("boolean", "int", None),
        ("date", "timestamp", None),
        ("timestamp", "timestamptz", None),
        ("list<null>", "list<long>", "list<long>"),
        ("list<long>", "long", None),
        ("struct<a: int, b: null>", "struct<c: string, a: long>", "struct<a: long, b: null, c: string>"),
        ("struct<a: int>", "struct<A: int>", None),
        ("struct<a: int>", "struct<a: string>", None),
        ("map<string, int>", "map<string, long>", "map<string, long>"),
    ],
)
def test_merged(first: str, second: str, expected: str | None) -> None:
    assert types.merged(first, second) == expected


@given(any_type)
def test_canonical_text_is_a_fixed_point(text: str) -> None:
    assert types.parse_type(text) == text


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("INTEGER", "int"), ("Int4", "int"), ("tinyint", "int"), ("BIGINT", "long"), ("INT8", "long"),
        ("UBIGINT", "decimal(20,0)"), ("HUGEINT", "decimal(38,0)"), ("VARCHAR", "string"), ("varchar(10)", "string"),
        ("CHARACTER VARYING(3)", "string"), ("TEXT", "string"), ("NUMERIC(10,2)", "decimal(10,2)"),
        ("Decimal( 10 , 2 )", "decimal(10,2)"), ("decimal(5)", "decimal(5,0)"), ("DOUBLE PRECISION", "double"),
        ("REAL", "float"), ("float(53)", "double"), ("BOOL", "boolean"), ("TIMESTAMP", "timestamp"),
        ("TIMESTAMP WITH TIME ZONE", "timestamptz"), ("timestamp(6) with time zone", "timestamptz"),
        ("timestamp without time zone", "timestamp"), ("TIMESTAMP_NTZ", "timestamp"), ("TIMESTAMP_LTZ", "timestamptz"),
        ("timestamp(9)", "timestamp_ns"), ("BLOB", "binary"), ("BYTES", "binary"), ("VOID", "null"), ('"NULL"', "null"),
        ("array<BIGINT>", "list<long>"), ("BIGINT[]", "list<long>"), ("BIGINT[3][]", "list<list<long>>"),
        ("STRUCT(a BIGINT, \"b c\" VARCHAR[])", "struct<a: long, `b c`: list<string>>"),
        ("struct<a:bigint NOT NULL,`x``y`:map<string,int>>", "struct<a: long, `x``y`: map<string, int>>"),
        ("MAP(VARCHAR, DOUBLE)", "map<string, double>"), ("fixed(16)", "fixed[16]"), ("fixed[16][]", "list<fixed[16]>"),
        ("struct<timestamp: timestamp with time zone>", "struct<timestamp: timestamptz>"),
    ],
)  # fmt: skip
def test_every_spelling_is_understood(spelling: str, canonical: str) -> None:
    assert types.parse_type(spelling) == canonical


@pytest.mark.parametrize(
    "text",
    ["", "  ", "lng", "decimal", "decimal(39,2)", "decimal(2,3)", "list<", "list<long", "struct<a long, a int>",
     "long>", "map<string>", "long[", "fixed[0]", "interval", "a; drop table t", "uhugeint",
     "list<" * 90 + "long" + ">" * 90, "long" + "[]" * 90],
)  # fmt: skip
def test_what_is_not_a_type_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        types.parse_type(text)
    assert repr(text) in caught.value.what
    assert caught.value.next


@pytest.mark.parametrize(
    ("old", "new", "safe"),
    [
        ("int", "long", True), ("long", "int", False), ("float", "double", True), ("long", "double", False),
        ("decimal(10,2)", "decimal(12,2)", True), ("decimal(10,2)", "decimal(12,3)", False), ("int", "int", True),
        ("struct<a: int>", "struct<b: string, a: long>", True), ("struct<a: int, b: int>", "struct<a: int>", False),
        ("list<int>", "list<long>", True), ("map<int, int>", "map<long, int>", False), ("string", "binary", False),
    ],
)  # fmt: skip
def test_only_icebergs_safe_promotions_are_promotable(old: str, new: str, safe: bool) -> None:
    assert types.promotable(old, new) is safe


@given(mergeable, mergeable)
def test_an_evolved_column_is_a_safe_promotion_that_needs_no_second_step(current: str, wanted: str) -> None:
    target = types.evolved(current, wanted)
    if target is not None:
        assert types.promotable(current, target)
        assert types.evolved(target, wanted) == target


@pytest.mark.parametrize(
    ("current", "wanted", "target"),
    [
        ("double", "long", "double"),
        ("long", "double", None),
        ("int", "long", "long"),
        ("decimal(18,2)", "decimal(10,1)", "decimal(18,2)"),
        ("decimal(5,2)", "int", "decimal(12,2)"),
        ("decimal(18,2)", "decimal(18,3)", None),
        ("struct<a: int, b: int>", "struct<a: long, c: string>", "struct<a: long, b: int, c: string>"),
        ("list<long>", "list<null>", "list<long>"),
        ("string", "long", None),
    ],
)
def test_evolved(current: str, wanted: str, target: str | None) -> None:
    assert types.evolved(current, wanted) == target


def test_a_text_column_keeps_whatever_was_read_out_of_text() -> None:
    assert types.evolved("string", "long", wanted_is_text=True) == "string"
    assert types.evolved("long", "string", wanted_is_text=True) is None


def test_types_that_no_value_settled_yet_get_the_default() -> None:
    assert (
        types.without_null("struct<a: null, b: list<null>, c: long>") == "struct<a: string, b: list<string>, c: long>"
    )


@given(any_type)
def test_iceberg_types_round_trip_and_have_unique_ids(text: str) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    iceberg = types.iceberg_type(text)
    assert types.text_of(iceberg) == text
    schema = Schema(NestedField(100_000, "top", iceberg, required=False))
    assert schema.find_type("top") == iceberg


@given(any_type)
def test_arrow_types_round_trip(text: str) -> None:
    assert types.from_arrow(types.arrow_type(text)) == text


def test_arrow_types_without_an_iceberg_twin_become_the_narrowest_that_holds_them() -> None:
    found = {
        str(type): types.from_arrow(type)
        for type in (
            pa.uint32(), pa.uint64(), pa.int8(), pa.float16(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()),
            pa.timestamp("ms", "Europe/Paris"), pa.decimal128(5, -2), pa.large_list(pa.int16()), pa.date64(),
        )
    }  # fmt: skip
    assert list(found.values()) == [
        "long", "decimal(20,0)", "int", "float", "string", "string", "timestamptz", "decimal(7,0)", "list<int>", "date",
    ]  # fmt: skip


def test_arrow_types_that_iceberg_cannot_hold_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="duration"):
        types.from_arrow(pa.duration("s"))
    with pytest.raises(UsageError, match="decimal256"):
        types.from_arrow(pa.decimal256(50, 2))


@given(any_type)
@settings(max_examples=60, deadline=None)
def test_duckdb_takes_its_spelling_and_gives_the_type_back(text: str) -> None:
    with duckdb.connect() as connection:
        shown = connection.sql(f"SELECT CAST(NULL AS {types.duckdb_type(text)}) AS v").types[0]
    back = types.parse_type(str(shown))
    # DuckDB has one type for bytes, whether their length is fixed or not.
    assert types.duckdb_type(back) == types.duckdb_type(text)


def test_spark_spells_timestamps_its_own_way_and_quotes_fields() -> None:
    text = "struct<at: timestamp, seen: timestamptz, `x``y`: list<decimal(9,2)>, m: map<string, long>>"
    assert types.spark_type(text) == (
        "STRUCT<`at`: TIMESTAMP_NTZ, `seen`: TIMESTAMP, `x``y`: ARRAY<DECIMAL(9,2)>, `m`: MAP<STRING, BIGINT>>"
    )


@pytest.mark.parametrize("text", ["time", "timestamp_ns", "list<timestamptz_ns>"])
def test_what_spark_cannot_hold_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(UsageError, match="Spark has no type") as caught:
        types.spark_type(text)
    assert "declare" in caught.value.next


def test_duckdbs_view_of_json_becomes_types() -> None:
    rows = """('{"a": 1, "b": [{"x": 1.5}, {"y": null}], "c": true, "d": -1, "e": []}'), ('{"a": "t", "d": 2}')"""
    with duckdb.connect() as connection:
        query = f"SELECT json_group_structure(j::JSON) FROM (VALUES {rows}) t(j)"
        ((structure,),) = connection.sql(query).fetchall()
    assert types.from_duckdb_structure(structure) == (
        "struct<a: string, b: list<struct<x: double, y: null>>, c: boolean, d: long, e: list<null>>"
    )
    assert types.from_duckdb_structure("UBIGINT") == types.from_duckdb_structure('"UBIGINT"') == "long"
    assert types.from_duckdb_structure(["NULL"]) == "list<null>"
