"""Migrating groups: no target partition is written by two of them, and as little as possible is thrown together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from relayout.compact.containment import EVERYWHERE, Box, Span, box_of, components, hull_of, partitions_in
from relayout.table.evidence import Evidence, exactly
from relayout.table.partition_keys import PartitionSpec, SpecField
from relayout.table.predicates import Leaf
from relayout.table.transforms import Transform, source_evidence

LEAVES = {1: Leaf(1, ("id",), "long"), 2: Leaf(2, ("region",), "string"), 3: Leaf(3, ("ts",), "timestamp")}


def span(low: int | None, high: int | None) -> Span:
    return Span((0,) if low is None else (1, low), (2,) if high is None else (1, high))


def target(*fields: tuple[int, str]) -> PartitionSpec:
    return PartitionSpec(
        9, tuple(SpecField(1000 + n, source, f"p{n}", Transform.parse(text)) for n, (source, text) in enumerate(fields))
    )


SPANS = some.tuples(some.none() | some.integers(0, 6), some.none() | some.integers(0, 4)).map(
    lambda pair: span(pair[0], None if pair[1] is None else (pair[0] or 0) + pair[1])
)


@given(some.lists(some.tuples(SPANS, SPANS), max_size=12))
def test_boxes_of_different_groups_never_share_a_partition(boxes: list[Box]) -> None:
    groups = components(boxes)
    assert sorted(place for group in groups for place in group) == list(range(len(boxes)))
    for number, group in enumerate(groups):
        for other in groups[number + 1 :]:
            for left in group:
                for right in other:
                    pairs = zip(boxes[left], boxes[right], strict=True)
                    assert any(one.high < two.low or two.high < one.low for one, two in pairs)


def test_months_into_days_and_days_into_months() -> None:
    month, day = Transform.parse("month"), Transform.parse("day")
    months = [source_evidence(month, "timestamp", count) for count in (648, 649, 648)]
    boxes = [box_of(target((3, "day")), LEAVES, {3: known}) for known in months]
    assert components(boxes) == [[0, 2], [1]]
    assert partitions_in(boxes[0]) == 31
    days = [source_evidence(day, "timestamp", count) for count in (19_723, 19_753, 19_754)]
    boxes = [box_of(target((3, "month")), LEAVES, {3: known}) for known in days]
    assert components(boxes) == [[0, 1], [2]], "31 January is its last day"
    assert partitions_in(hull_of(boxes)) == 2


def test_buckets_into_fewer_buckets_are_known_and_into_others_are_not() -> None:
    sixteen = [source_evidence(Transform.parse("bucket[16]"), "long", number) for number in (1, 5, 2)]
    boxes = [box_of(target((1, "bucket[4]")), LEAVES, {1: known}) for known in sixteen]
    assert components(boxes) == [[0, 1], [2]]
    boxes = [box_of(target((1, "bucket[3]")), LEAVES, {1: known}) for known in sixteen]
    assert components(boxes) == [[0, 1, 2]]
    assert partitions_in(boxes[0]) == 3


def test_what_is_not_known_reaches_everywhere() -> None:
    assert box_of(target((2, "identity")), LEAVES, {}) == (EVERYWHERE,)
    assert partitions_in((EVERYWHERE,)) is None
    assert box_of(target((2, "void")), LEAVES, {})[0].is_one_value
    assert box_of(target((7, "identity")), LEAVES, {}) == (EVERYWHERE,)
    nullable = Evidence(may_have_nulls=True, may_have_nans=False, lower="b", upper="c")
    low, high = (box_of(target((2, "identity")), LEAVES, {2: known})[0] for known in (exactly(None), nullable))
    assert low.is_one_value
    assert low.value is None
    assert components([(low,), (high,)]) == [[0, 1]], "both may write the null partition"


def test_unpartitioned_targets_take_everything_into_one_group() -> None:
    assert components([(), ()]) == [[0, 1]]
    assert partitions_in(()) == 1
