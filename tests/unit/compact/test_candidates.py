"""Candidates, their groups, and what they are expected to become."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from relayout.compact.candidates import (
    ASKED,
    DELETES,
    LARGE,
    OLD_SPEC,
    SMALL,
    Candidate,
    is_worth_it,
    output_files,
    packed,
    reason_of,
    why_rewritten,
)
from relayout.compact.options import RewriteOptions
from relayout.compact.plan import JobOrder, Mode
from relayout.errors import UsageError
from relayout.jobs.candidate_spool import CandidateSpool
from relayout.jobs.rewrite_groups import forget_old_members

OPTIONS = RewriteOptions(target_file_size_bytes=100).sized({})
"""Files from 75 to 180 bytes are left alone."""


def candidate(size: int, why: int = SMALL, **more: Any) -> Candidate:
    told = Candidate(0, 0, 1, f"f{size}", "parquet", 10, size, why, "", None, None, ())
    return replace(told, **more)


@pytest.mark.parametrize(
    ("size", "deletes", "deleted_rows", "options", "why"),
    [
        (74, 0, 0, {}, SMALL),
        (75, 0, 0, {}, 0),
        (180, 0, 0, {}, 0),
        (181, 0, 0, {}, LARGE),
        (100, 9, 2, {}, 0),
        (100, 1, 3, {}, DELETES),
        (100, 1, 0, {"delete_file_threshold": 1}, DELETES),
        (100, 0, 0, {"rewrite_all": True}, ASKED),
        (10, 1, 10, {}, SMALL | DELETES),
    ],
)
def test_files_are_chosen_by_size_and_deletes(
    size: int, deletes: int, deleted_rows: int, options: dict[str, Any], why: int
) -> None:
    assert why_rewritten(size, 10, deletes, deleted_rows, replace(OPTIONS, **options)) == why


@pytest.mark.parametrize(
    ("sizes", "why", "worth"),
    [
        ([10] * 5, SMALL, True),
        ([10] * 4, SMALL, False),
        ([60, 60], SMALL, True),
        ([70], SMALL, False),
        ([200], LARGE, True),
        ([100], DELETES, True),
        ([10], OLD_SPEC, True),
    ],
)
def test_a_group_must_gain_something(sizes: list[int], why: int, worth: bool) -> None:
    assert is_worth_it([candidate(size, why) for size in sizes], OPTIONS) is worth


@given(some.lists(some.integers(1, 90), max_size=30), some.integers(1, 5), some.integers(50, 200))
def test_groups_keep_the_order_and_their_limits(sizes: list[int], most: int, limit: int) -> None:
    options = replace(OPTIONS, max_file_group_input_files=most, max_file_group_size_bytes=limit)
    given_files = [candidate(size) for size in sizes]
    groups = list(packed(given_files, options))
    assert [file for group in groups for file in group] == given_files
    for group in groups:
        assert 1 <= len(group) <= most
        assert len(group) == 1 or sum(file.size_bytes for file in group) <= limit


@pytest.mark.parametrize(
    ("size", "files"), [(0, 1), (100, 1), (101, 1), (109, 1), (111, 2), (175, 2), (205, 2), (275, 3), (1050, 10)]
)
def test_a_small_rest_is_spread_over_the_other_files(size: int, files: int) -> None:
    assert output_files(size, OPTIONS) == files


def test_reasons_say_what_was_found() -> None:
    group = [candidate(10), candidate(20, SMALL | DELETES), candidate(500, LARGE)]
    assert reason_of(group, OPTIONS) == "2 files below 75 B, 1 file above 180 B, 1 file with deletes"
    assert reason_of([candidate(100, ASKED)], OPTIONS) == "1 file asked for"


def test_options_have_icebergs_names_and_defaults() -> None:
    told = RewriteOptions.of({"min-input-files": "2", "rewrite-all": "true", "rewrite-job-order": "bytes-desc"})
    assert (told.min_input_files, told.rewrite_all, told.rewrite_job_order) == (2, True, JobOrder.BYTES_DESC)
    assert RewriteOptions.of({"mode": "migrate", "target_spec_id": 0}).output_spec_id == 0
    assert RewriteOptions.of({"mode": "keep_spec"}).mode is Mode.KEEP_SPEC
    sized = RewriteOptions().sized({"write.target-file-size-bytes": "1000"})
    assert (sized.target_bytes, sized.smallest_bytes, sized.largest_bytes) == (1000, 750, 1800)
    assert RewriteOptions().sized({}).target_bytes == 512 << 20


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({"min-input-file": 2}, "did you mean 'min_input_files'"),
        ({"min-input-files": 0}, "at least 1"),
        ({"min-input-files": "many"}, "does not fit"),
        ({"rewrite-job-order": "random"}, "bytes-asc"),
        ({"strict": "maybe"}, "true or false"),
        ({"delete-ratio-threshold": 2}, "up to 1"),
        ({"mode": "upgrade"}, "keep-spec or migrate"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_a_way_out(told: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        RewriteOptions.of(told)


def test_sizes_out_of_order_are_refused() -> None:
    with pytest.raises(UsageError, match="does not lie between"):
        RewriteOptions(target_file_size_bytes=10, min_file_size_bytes=20).sized({})


@given(
    some.lists(some.tuples(some.integers(0, 3), some.integers(1, 3), some.text("a\udcffz", max_size=2)), max_size=40)
)
def test_on_disk_candidates_come_back_as_they_do_from_memory(told: list[tuple[int, int, str]]) -> None:
    files = [
        candidate(
            5,
            bin=place,
            key=place,
            data_sequence_number=age,
            path=f"{path}{number}",
            deletes=(number, 7),
            first_row_id=None,
        )
        for number, (place, age, path) in enumerate(told)
    ]
    orders = []
    for in_memory in (1_000, 3):
        with CandidateSpool(in_memory) as spool:
            for file in files:
                spool.add(file)
            orders.append(list(spool.ordered([2, 0, 3, 1])))
    assert orders[0] == orders[1]
    assert sorted(orders[0], key=str) == sorted(files, key=str)


def test_members_of_plans_long_past_are_forgotten(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in ("members-1.jsonl", "members-2.jsonl", "plan.json"))
    for path in (old, new, other):
        path.write_text(json.dumps({}), "utf-8")
    forget_old_members(tmp_path, new.stat().st_mtime - 1)
    assert old.exists()
    forget_old_members(tmp_path, new.stat().st_mtime + 1)
    assert not old.exists()
    assert other.exists()
