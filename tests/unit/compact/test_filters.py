"""A filter over several specs: judged per spec, once per partition, open where nobody can tell, and counted."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from relayout.compact.filters import Match, MultiSpecFilter
from relayout.compact.plan import FilterStats
from relayout.errors import PlanRefused
from relayout.table.live_entries import ColumnCounts, Manifest, Summary
from relayout.table.partition_keys import PartitionKey, PartitionSpec, SpecField
from relayout.table.predicates import Leaf, bind
from relayout.table.transforms import Transform
from relayout.table.where import parse_where

LEAVES = {
    1: Leaf(1, ("id",), "long"),
    2: Leaf(2, ("region",), "string"),
    3: Leaf(3, ("ts",), "timestamp"),
}
JANUARY_2024 = 54 * 12


def field(source_id: int, transform: str, name: str = "p", field_id: int = 1000) -> SpecField:
    return SpecField(field_id, source_id, name, Transform.parse(transform))


UNPARTITIONED = PartitionSpec(0)
BY_REGION = PartitionSpec(1, (field(2, "identity"),))
BY_MONTH = PartitionSpec(2, (field(3, "month"),))
BY_BUCKET = PartitionSpec(3, (field(1, "bucket[4]"),))
DROPPED = PartitionSpec(4, (field(99, "identity"), field(2, "identity")))
STRANGE = PartitionSpec(5, (field(2, "zorder[7]"),))
ALL_VOID = PartitionSpec(6, (field(2, "void"),))
EVOLVED = (UNPARTITIONED, BY_REGION, BY_MONTH, BY_BUCKET)


def filter_of(text: str, *specs: PartitionSpec) -> MultiSpecFilter:
    bound = bind(parse_where(text), tuple(LEAVES.values()))
    return MultiSpecFilter(bound, {spec.spec_id: spec for spec in specs}, LEAVES)


# Keys.


def test_a_key_of_a_partitioned_spec_has_its_values() -> None:
    assert PartitionKey.of(BY_REGION, ["eu"]).partition == ("eu",)


def test_whether_a_file_is_unpartitioned_is_for_its_own_spec_to_say() -> None:
    assert PartitionKey.of(UNPARTITIONED, []).partition is None
    assert PartitionKey.of(ALL_VOID, [None]).partition is None
    assert PartitionKey.of(BY_REGION, [None]).partition == (None,)


def test_a_key_is_made_from_an_entry_of_a_manifest() -> None:
    entry = SimpleNamespace(data_file=SimpleNamespace(partition=["eu"]))
    assert PartitionKey.from_manifest_entry(entry, BY_REGION) == PartitionKey.of(BY_REGION, ["eu"])
    assert PartitionKey.from_manifest_entry(entry, UNPARTITIONED).partition is None


def test_equal_keys_have_equal_hashes_and_others_differ() -> None:
    keys = {PartitionKey.of(BY_REGION, ["eu"]), PartitionKey.of(BY_REGION, ["eu"]), PartitionKey(2, ("eu",))}
    assert len(keys) == 2
    # Partitions are the same bits: SQL finds these two zeros equal, Iceberg keeps them apart; NaN is one partition.
    assert PartitionKey(1, (0.0,)) != PartitionKey(1, (-0.0,))
    assert PartitionKey(1, (math.nan,)) == PartitionKey(1, (float("nan"),))
    assert PartitionKey(1, (None,)) != PartitionKey(1, None)


def test_keys_sort_the_same_way_on_every_run() -> None:
    keys = [PartitionKey(2, (1,)), PartitionKey(1, ("us",)), PartitionKey(1, ("eu",)), PartitionKey(0)]
    assert [key.sort_key() for key in sorted(keys, key=PartitionKey.sort_key)] == sorted(
        [(0, "None"), (1, "('eu',)"), (1, "('us',)"), (2, "(1,)")]
    )


# One filter, several specs.


def test_one_spec_alone() -> None:
    judged = filter_of("region = 'eu'", BY_REGION)
    assert judged.judged(PartitionKey.of(BY_REGION, ["eu"])) is Match.MUST
    assert not judged.includes(PartitionKey.of(BY_REGION, ["us"]))
    assert judged.stats(0) == FilterStats()


@pytest.mark.parametrize(
    ("spec", "values", "match"),
    [
        (UNPARTITIONED, [], Match.MIGHT),
        (BY_REGION, ["eu"], Match.MIGHT),
        (BY_REGION, ["us"], Match.CANNOT),
        (BY_REGION, [None], Match.CANNOT),
        (BY_MONTH, [JANUARY_2024], Match.MIGHT),
        (BY_MONTH, [JANUARY_2024 - 1], Match.CANNOT),
        (BY_BUCKET, [2], Match.MIGHT),
    ],
)
def test_every_spec_of_an_evolved_table_judges_for_itself(spec: PartitionSpec, values: list[Any], match: Match) -> None:
    judged = filter_of("region = 'eu' and year(ts) = 2024", *EVOLVED)
    assert judged.judged(PartitionKey.of(spec, values)) is match
    assert judged.stats(0) == FilterStats(), "what is lossy or unpartitioned does not fail open"


@pytest.mark.parametrize("spec", [DROPPED, STRANGE])
def test_a_spec_that_cannot_be_judged_is_included_and_counted(spec: PartitionSpec) -> None:
    judged = filter_of("region = 'eu'", BY_REGION, spec)
    values = [1, "us"][: len(spec.fields)]
    assert judged.judged(PartitionKey.of(spec, values)) is Match.UNKNOWN
    assert judged.includes(PartitionKey.of(spec, values))
    assert judged.stats(3) == FilterStats(1, 0, 1, 3)


def test_an_unknown_transform_of_another_column_does_not_matter() -> None:
    judged = filter_of("id = 1", STRANGE)
    assert judged.judged(PartitionKey.of(STRANGE, ["x"])) is Match.MIGHT
    assert judged.stats(0) == FilterStats()


def test_a_tuple_that_cannot_be_evaluated_is_included_and_counted_once() -> None:
    judged = filter_of("year(ts) = 2024", BY_MONTH)
    broken = PartitionKey.of(BY_MONTH, ["January"])
    assert [judged.judged(broken) for _ in range(3)] == [Match.UNKNOWN] * 3
    assert judged.stats(0) == FilterStats(0, 1, 1, 0)


def test_a_partition_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = filter_of("region = 'eu'", BY_REGION)
    asked: list[PartitionKey] = []
    judge = MultiSpecFilter._judge
    monkeypatch.setattr(MultiSpecFilter, "_judge", lambda self, key: asked.append(key) or judge(self, key))
    for _ in range(3):
        judged.includes(PartitionKey.of(BY_REGION, ["eu"]))
        judged.includes(PartitionKey.of(BY_REGION, ["us"]))
    assert len(asked) == 2


def test_all_counters_count_what_they_say() -> None:
    judged = filter_of("region = 'eu' and year(ts) = 2024", *EVOLVED, DROPPED, STRANGE)
    for key in (
        PartitionKey.of(DROPPED, [1, "eu"]),
        PartitionKey.of(DROPPED, [2, "eu"]),
        PartitionKey.of(DROPPED, [2, "eu"]),
        PartitionKey.of(BY_MONTH, ["?"]),
        PartitionKey.of(UNPARTITIONED, []),
    ):
        assert judged.includes(key)
    assert judged.stats(7) == FilterStats(unevaluable_specs=2, eval_errors=1, fail_open_partitions=3, fail_open_files=7)


def test_strict_refuses_what_fails_open_and_names_it() -> None:
    judged = filter_of("region = 'eu'", BY_REGION, DROPPED)
    judged.refuse_what_is_open()
    judged.includes(PartitionKey.of(DROPPED, [1, "eu"]))
    with pytest.raises(PlanRefused, match="spec 4: the source column of its field 'p' no longer exists"):
        judged.refuse_what_is_open()


def test_statistics_sharpen_what_the_partition_leaves_open() -> None:
    judged = filter_of("region = 'eu' and id > 10", *EVOLVED, DROPPED)

    def ids(low: int, high: int) -> ColumnCounts:
        return ColumnCounts({1: 5}, {1: 0}, {}, {1: low.to_bytes(8, "little")}, {1: high.to_bytes(8, "little")})

    eu = PartitionKey.of(BY_REGION, ["eu"])
    assert judged.judged_file(eu, ids(11, 20)) is Match.MUST
    assert judged.judged_file(eu, ids(1, 10)) is Match.CANNOT
    assert judged.judged_file(eu, ids(1, 20)) is Match.MIGHT
    assert judged.judged_file(PartitionKey.of(UNPARTITIONED, []), ids(1, 10)) is Match.CANNOT
    dropped = PartitionKey.of(DROPPED, [1, "eu"])
    assert judged.judged_file(dropped, ids(1, 10)) is Match.CANNOT
    assert judged.judged_file(dropped, ids(11, 20)) is Match.UNKNOWN


# Whole manifests.


def manifest_of(spec: PartitionSpec, *summaries: Summary) -> Manifest:
    return Manifest("m", 1, spec.spec_id, False, 1, 1, 10, None, summaries)


@pytest.mark.parametrize(
    ("summary", "excluded"),
    [
        (Summary(False, False, b"a", b"d"), True),
        (Summary(False, False, b"a", b"eu"), False),
        (Summary(True, False, b"f", b"z"), True),
        (Summary(True, False, None, None), True),
        (Summary(False, True, None, None), False),
        (Summary(False, False, b"\xff", b"z"), False),
    ],
)
def test_a_manifest_whose_summaries_rule_the_filter_out_is_not_read(summary: Summary, excluded: bool) -> None:
    judged = filter_of("region = 'eu'", BY_REGION)
    assert judged.excludes_manifest(manifest_of(BY_REGION, summary)) is excluded


def test_manifests_of_specs_that_say_nothing_are_read() -> None:
    judged = filter_of("region = 'eu'", *EVOLVED, DROPPED)
    assert not judged.excludes_manifest(manifest_of(UNPARTITIONED))
    assert not judged.excludes_manifest(manifest_of(DROPPED, Summary(False, False), Summary(False, False, b"a", b"b")))
    assert not judged.excludes_manifest(manifest_of(BY_REGION))
    bucket = (3).to_bytes(4, "little")
    assert filter_of("id = 34", BY_BUCKET).excludes_manifest(
        manifest_of(BY_BUCKET, Summary(False, False, bucket, bucket))
    ) is (2017239379 % 4 != 3)
