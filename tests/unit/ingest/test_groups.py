"""Batches share a commit only where a commit each would cost much, and the deal is the same for the same batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relayout.ingest.units import LARGEST_GROUP, MOST_COMMITS, Unit, apart, groups_of
from relayout.table.sources import SourceFile

MB = 1_000_000


def units(count: int, size_bytes: int) -> tuple[Unit, ...]:
    return tuple(Unit((), ((SourceFile(f"/in/{number}", size_bytes, 0),),)) for number in range(count))


def sizes(count: int, size_mb: int, cores: int) -> list[int]:
    return [len(group) for group in groups_of(units(count, size_mb * MB), cores)]


def test_a_few_batches_get_a_commit_each() -> None:
    assert sizes(4, 1, cores=2) == [1, 1, 1, 1]


def test_large_batches_get_a_commit_each() -> None:
    assert sizes(10, 256, cores=2) == [1] * 10


def test_batches_that_load_about_as_fast_as_they_commit_share_commits() -> None:
    assert sizes(10, 98, cores=2) == [4, 4, 2]
    assert sizes(10, 98, cores=16) == [3, 3, 3, 1]
    assert sizes(12, 1, cores=2) == [4, 4, 4]


def test_what_took_down_the_job_of_one_batch_is_tried_again_without_others() -> None:
    assert [len(group) for group in apart(units(10, MB))] == [1] * 10


@given(st.integers(0, 3_000), st.integers(0, 1_000 * MB), st.integers(1, 64))
def test_every_batch_is_in_one_group_and_groups_are_bounded(count: int, size_bytes: int, cores: int) -> None:
    told = units(count, size_bytes)
    for groups in (groups_of(told, cores), apart(told)):
        assert [unit for group in groups for unit in group] == list(told)
        assert all(0 < len(group) <= LARGEST_GROUP for group in groups)
        assert len(groups) <= max(MOST_COMMITS, -(-count // LARGEST_GROUP))
