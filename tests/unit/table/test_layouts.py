from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.errors import UsageError
from relayout.table.layouts import (
    Layout,
    PartitionField,
    SortField,
    describe,
    layout_of,
    normal_transform,
    transform_result_type,
)
from relayout.table.types import iceberg_type, text_of

PRIMITIVES = [
    "boolean", "int", "long", "float", "double", "decimal(9,2)", "date", "time", "timestamp", "timestamptz",
    "timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[3]", "binary",
]  # fmt: skip
TRANSFORMS = ["identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour", "void"]


@dataclass(frozen=True)
class Key:
    name: str
    transform: str = "identity"


@dataclass(frozen=True)
class DeclaredTable:
    partitions: tuple[Key, ...]
    sort: tuple[str, ...] = ()


def test_a_declared_table_becomes_a_layout_with_icebergs_names() -> None:
    declared = DeclaredTable(
        (Key("year"), Key("geo_fips", "bucket(16)"), Key("name", "truncate[3]"), Key("at", "days")),
        ("geo_fips", "year desc"),
    )
    layout = layout_of(declared)
    assert [(field.name, field.transform) for field in layout.partition] == [
        ("year", "identity"),
        ("geo_fips_bucket", "bucket[16]"),
        ("name_trunc", "truncate[3]"),
        ("at_day", "day"),
    ]
    assert layout.sort == (SortField("geo_fips"), SortField("year", descending=True, nulls_first=False))
    assert layout.identity_columns == ("year",)
    assert layout.columns == ("year", "geo_fips", "name", "at")
    assert describe(layout) == (
        "year / bucket[16](geo_fips) / truncate[3](name) / day(at), sorted by geo_fips, year desc"
    )


def test_a_layout_without_partitions_says_so() -> None:
    assert describe(Layout()) == "unpartitioned"


@pytest.mark.parametrize(
    "text", ["", "buckets", "bucket", "bucket[0]", "bucket[x]", "truncate[-1]", "zorder", "bucket[3000000000]"]
)
def test_unknown_transforms_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a partition transform"):
        normal_transform(text)


def test_a_layout_that_names_something_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'id_bucket' occurs twice"):
        Layout((PartitionField("id", "bucket[4]"), PartitionField("id", "bucket[8]")))
    with pytest.raises(UsageError, match="sort column 'a' occurs twice"):
        Layout(sort=(SortField("a"), SortField("a", descending=True)))


@given(
    st.builds(
        SortField,
        st.sampled_from(["a", "my col", "desc", "größe"]),
        st.booleans(),
        st.booleans(),
    )
)
def test_sort_fields_are_read_back_as_written(field: SortField) -> None:
    assert SortField.parse(str(field)) == field


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", SortField("a")),
        ("a ASC", SortField("a")),
        ("a desc", SortField("a", True, False)),
        ("a DESC NULLS FIRST", SortField("a", True, True)),
        ("a nulls last", SortField("a", False, False)),
        ("`odd desc` desc", SortField("odd desc", True, False)),
    ],
)
def test_sort_texts(text: str, expected: SortField) -> None:
    assert SortField.parse(text) == expected


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("type", PRIMITIVES)
def test_result_types_agree_with_pyiceberg(transform: str, type: str) -> None:
    from pyiceberg.transforms import parse_transform

    peer = parse_transform(transform)
    source = iceberg_type(type)
    if peer.can_transform(source):
        assert transform_result_type(transform, type) == text_of(peer.result_type(source))
    else:
        with pytest.raises(UsageError, match="cannot partition"):
            transform_result_type(transform, type)


def test_nested_columns_cannot_be_partition_values() -> None:
    with pytest.raises(UsageError, match="list<long>"):
        transform_result_type("identity", "list<long>")
