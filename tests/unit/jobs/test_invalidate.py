"""Invalidating: marks name commits, so that a mark reaches exactly the load that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from relayout.errors import MissingError, UsageError
from relayout.jobs.invalidate import Invalidation, invalidated_records, plan_invalidation
from relayout.jobs.status import read_status
from relayout.upkeep.lake_status import BatchState


@pytest.fixture
def lake(make_lake: Any) -> Any:
    made = make_lake()
    made.create("income")
    for year in (2021, 2020):
        made.load("income", {"year": year})
    return made


def states(lake: Any) -> dict[str, BatchState]:
    (income,) = read_status(lake.config, ["income"]).tables
    return {str(batch.key): batch.state for batch in income.ledger.batches}


def keys(planned: Invalidation) -> list[str]:
    return [str(batch.key) for batch in planned.batches]


def mark(lake: Any, planned: Invalidation) -> None:
    lake.record(*invalidated_records(planned, 1_800_000_000_000))


def test_the_named_batches_are_planned_with_the_commit_that_holds_them(lake: Any) -> None:
    planned = plan_invalidation(lake.config, "econ.income", ["year=2020"])
    assert planned.to_json() == {
        "schema": 1,
        "kind": "invalidation",
        "table": "income",
        "batches": [{"batch": {"year": 2020}, "snapshot_id": lake.snapshot_id("income"), "rows": 3}],
        "already_invalidated": 0,
    }


def test_without_names_all_loaded_batches_are_planned_in_the_order_of_their_keys(lake: Any) -> None:
    assert keys(plan_invalidation(lake.config, "income", ())) == ["{year=2020}", "{year=2021}"]


def test_planning_writes_nothing(lake: Any) -> None:
    before = lake.records("income")
    plan_invalidation(lake.config, "income", ())
    assert lake.records("income") == before


def test_a_marked_batch_keeps_its_rows_and_is_not_done_any_more(lake: Any) -> None:
    mark(lake, plan_invalidation(lake.config, "income", ["year=2020"]))
    assert states(lake) == {"{year=2020}": BatchState.INVALIDATED, "{year=2021}": BatchState.DONE}
    assert lake.table("income").scan().count() == 6


def test_marking_a_batch_twice_adds_nothing(lake: Any) -> None:
    mark(lake, plan_invalidation(lake.config, "income", ["year=2020"]))
    again = plan_invalidation(lake.config, "income", ["year=2020"])
    assert again == Invalidation("income", (), already=1)
    assert invalidated_records(again, 0) == []
    rest = plan_invalidation(lake.config, "income", ())
    assert (keys(rest), rest.already) == (["{year=2021}"], 1)


def test_a_batch_that_is_loaded_again_before_the_mark_is_written_stays_done(lake: Any) -> None:
    planned = plan_invalidation(lake.config, "income", ["year=2020"])
    lake.load("income", {"year": 2020})
    mark(lake, planned)
    assert states(lake) == {"{year=2020}": BatchState.DONE, "{year=2021}": BatchState.DONE}


def test_a_batch_whose_ledger_line_was_lost_can_be_marked(lake: Any) -> None:
    lake.load("income", {"year": 2022}, recorded=False)
    mark(lake, plan_invalidation(lake.config, "income", ["year=2022"]))
    assert states(lake)["{year=2022}"] is BatchState.INVALIDATED


def test_a_batch_that_is_not_loaded_is_refused(lake: Any) -> None:
    with pytest.raises(UsageError, match="no loaded batch"):
        plan_invalidation(lake.config, "income", ["year=2020", "year=2031"])


def test_a_table_without_loaded_batches_has_nothing_to_mark(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income")
    assert plan_invalidation(lake.config, "income", ()) == Invalidation("income", ())


def test_a_table_that_cannot_be_marked_is_named_with_what_to_do(make_lake: Any) -> None:
    lake = make_lake()
    lake.create("income", namespace="old")
    told = {}
    for name in ("income", "wages", "old.income"):
        with pytest.raises(MissingError) as caught:
            plan_invalidation(lake.config, name, ())
        told[name] = (caught.value.what, caught.value.next)
    assert told == {
        "income": ("econ.income was never loaded: there is no such table yet", "run `relayout apply`"),
        "wages": ("there is no table econ.wages", "declared tables: income"),
        "old.income": ("old.income does not lie in namespace 'econ'", "declared tables: income"),
    }
