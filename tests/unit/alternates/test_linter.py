"""Which alternates pay, in words of their predicates, and what stands in for those that do not."""

from __future__ import annotations

import pytest

from relayout.alternates.linter import helped_predicates, refusal, replacement, worthwhile
from relayout.config.model import Alternate, Cluster, PartitionKey
from relayout.table.layouts import Layout, PartitionField, SortField

BASE = Layout((PartitionField("year"), PartitionField("geo")), (SortField("geo"),))


def alternate(*keys: str | tuple[str, str], sort: tuple[str, ...] = (), cluster: Cluster | None = None) -> Alternate:
    told = [PartitionKey(key) if isinstance(key, str) else PartitionKey(key[0], None, key[1]) for key in keys]
    return Alternate("a", tuple(told), sort, cluster)


@pytest.mark.parametrize("keys", [("geo", "year"), ("year", "geo")])
@pytest.mark.parametrize("sort", [(), ("geo",)])
def test_the_same_levels_in_whatever_order_save_no_file(keys: tuple[str, ...], sort: tuple[str, ...]) -> None:
    assert refusal(alternate(*keys, sort=sort), BASE)
    assert worthwhile([alternate(*keys, sort=sort)], BASE) == []


@pytest.mark.parametrize(
    "pays",
    [
        alternate("geo"),
        alternate("year", ("geo", "bucket[16]")),
        alternate("geo", "year", sort=("value",)),
        alternate("geo", "year", cluster=Cluster("hilbert", ("value", "geo"))),
        alternate(),
    ],
)
def test_other_granularity_transform_order_or_curve_may_pay(pays: Alternate) -> None:
    assert refusal(pays, BASE) == ""
    assert worthwhile([pays], BASE) == [pays]


def test_what_is_proposed_in_place_of_a_reordering_is_not_refused_itself() -> None:
    text = replacement(alternate("geo", "year"), BASE, {"geo": "string", "year": "int"})
    assert text.splitlines()[1:] == [
        "  partition: {keys: [{name: geo, transform: 'bucket[16]'}]}",
        "  sort: [geo, year]",
    ]
    assert refusal(alternate(("geo", "bucket[16]"), sort=("geo", "year")), BASE) == ""


def test_a_column_that_no_bucket_takes_is_sorted_by() -> None:
    text = replacement(alternate("the 'flag'", "year"), BASE, {"the 'flag'": "boolean"})
    assert text.splitlines() == ["- name: a", "  sort: ['the ''flag''', year]"]


@pytest.mark.parametrize(
    ("declared", "helped"),
    [
        (alternate(("geo", "bucket[4]"), sort=("geo",)), ("geo = …", "geo IN (…)")),
        (alternate(("day", "month")), ("day BETWEEN … AND …",)),
        (alternate("value"), ("value = …", "value BETWEEN … AND …")),
        (alternate(sort=("value desc",)), ("value = …", "value BETWEEN … AND …")),
        (
            alternate(cluster=Cluster("zorder", ("a", "b"))),
            ("a = …", "a BETWEEN … AND …", "b = …", "b BETWEEN … AND …"),
        ),
        (alternate("geo"), ()),
    ],
)
def test_only_predicates_that_the_base_does_not_serve_are_named(declared: Alternate, helped: tuple[str, ...]) -> None:
    assert helped_predicates(declared, BASE) == helped
