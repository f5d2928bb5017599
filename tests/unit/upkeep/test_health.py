"""A health score is explained down to the last point, and every fix is a command for that very table."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relayout.read.census import CLASS_NAMES, FileCensus, SpecFiles
from relayout.upkeep.health import Debts, Health, Loss, health_of


def counted(files: int, size_bytes: int = 1_000, rows: int = 1_000, **more: int) -> FileCensus:
    histogram = (files,) + (0,) * (len(CLASS_NAMES) - 1)
    return FileCensus((SpecFiles(0, files, size_bytes, histogram),), rows=rows, **more)


def test_a_table_without_debts_is_in_perfect_health() -> None:
    assert health_of("income", Debts(counted(12), batches=5)) == Health()
    assert Health().score == 100


def test_an_empty_table_is_in_perfect_health() -> None:
    assert health_of("income", Debts(FileCensus())) == Health()


def test_files_that_were_not_counted_are_said_to_be_so() -> None:
    health = health_of("income", Debts(None, batches=5))
    assert health == Health((), files_counted=False)
    assert health.to_json()["files_counted"] is False


def test_small_files_cost_by_the_share_that_merging_would_save() -> None:
    assert health_of("income", Debts(counted(100, small_files=60, excess_files=50))).losses == (
        Loss(15, "50 files fewer of 100 would do if small ones were merged", "relayout compact income"),
    )


def test_small_files_without_neighbours_matter_from_a_thousand_on() -> None:
    assert health_of("income", Debts(counted(2_000, lone_files=999))).score == 100
    assert health_of("income", Debts(counted(2_000, lone_files=1_000))).losses == (
        Loss(
            5,
            "1,000 small files with too few neighbours in their partition to merge",
            "declare fewer or coarser partition keys, then relayout apply",
        ),
    )


def test_delete_files_cost_by_their_number_or_by_the_rows_that_they_take_out() -> None:
    many_files = Debts(counted(10, position_delete_files=3, equality_delete_files=2))
    assert health_of("income", many_files).losses == (
        Loss(12, "5 delete files to merge with 10 data files on read", "relayout compact income"),
    )
    many_rows = Debts(counted(100, position_delete_files=1, deleted_rows=100))
    assert health_of("income", many_rows).losses == (
        Loss(12, "1 delete file to merge with 100 data files on read, 100 deleted rows", "relayout compact income"),
    )


def test_a_table_that_does_not_lie_as_declared_loses_all_layout_points() -> None:
    assert health_of("income", Debts(counted(1), drifted=True, other_spec_bytes=10)).losses == (
        Loss(15, "the table is not laid out as declared", "relayout apply income"),
    )


def test_files_of_earlier_specs_cost_by_their_bytes() -> None:
    assert health_of("income", Debts(counted(4, 1_000), other_spec_bytes=400)).losses == (
        Loss(6, "40% of the bytes lie in files of earlier partition specs", "relayout compact income --mode migrate"),
    )


def test_one_failed_batch_among_many_still_shows() -> None:
    assert health_of("income", Debts(counted(1), batches=1_000, failed=1, invalidated=1)).losses == (
        Loss(5, "1 batch failed when last tried", "relayout retry"),
        Loss(1, "1 batch invalidated and not loaded again yet", "relayout apply"),
    )
    assert health_of("income", Debts(counted(1), batches=2, failed=2)).losses == (
        Loss(15, "2 batches failed when last tried", "relayout retry"),
    )


def test_everything_at_its_worst_is_zero() -> None:
    census = counted(1_000, small_files=1_000, excess_files=1_000, lone_files=1_000, equality_delete_files=1_000)
    assert health_of("income", Debts(census, drifted=True, batches=2, failed=2, invalidated=2)).score == 0


def test_the_formula_is_part_of_the_answer() -> None:
    told = health_of("income", Debts(counted(1), drifted=True)).to_json()
    assert told["score"] == 85
    assert told["lost"] == [
        {"points": 15, "what": "the table is not laid out as declared", "fix": "relayout apply income"}
    ]
    assert told["formula"] == (
        "100 - 30 x files that merging small ones would save / data files"
        " - 10 x small files alone in their partition / data files (from 1,000 of them)"
        " - 25 x the larger of delete files / data files and deleted rows / 20% of the rows"
        " - 15 x bytes that do not lie as declared / bytes"
        " - 15 x failed batches / batches (5 at least)"
        " - 5 x invalidated batches / batches (1 at least)"
    )


COUNTS = st.integers(0, 10**7)


@given(
    files=COUNTS, rows=COUNTS, small=st.tuples(COUNTS, COUNTS), deletes=st.tuples(COUNTS, COUNTS, COUNTS),
    drifted=st.booleans(), other=COUNTS, batches=st.tuples(COUNTS, COUNTS, COUNTS),
)  # fmt: skip
def test_a_score_is_never_outside_its_scale_and_always_adds_up(
    files: int,
    rows: int,
    small: tuple[int, int],
    deletes: tuple[int, int, int],
    drifted: bool,
    other: int,
    batches: tuple[int, int, int],
) -> None:
    census = counted(
        files,
        rows=rows,
        excess_files=small[0],
        lone_files=small[1],
        position_delete_files=deletes[0],
        equality_delete_files=deletes[1],
        deleted_rows=deletes[2],
    )
    health = health_of("income", Debts(census, drifted, other, *batches))
    assert 0 <= health.score <= 100
    assert health.score + sum(loss.points for loss in health.losses) == 100
    assert all(loss.points > 0 and loss.what and loss.fix for loss in health.losses)
