"""Whatever happens to a base, and whatever fails on the way: what an alternate calls fresh are the base's rows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relayout.api import Lake
from relayout.commit.alternates import AlternatePublisher
from tests.spark.alternates.conftest import BY_GEO, SORTED, Farm

LONG = os.environ.get("RELAYOUT_FAULTS") == "long"
YEARS = (2020, 2021, 2022)
NUMBERS = itertools.count(1)

years = st.sampled_from(YEARS)
steps = st.one_of(
    st.tuples(st.just("source"), years),
    st.tuples(st.just("update"), years),
    st.tuples(st.just("delete"), st.sampled_from(["g0", "g1"])),
    st.tuples(st.just("insert"), st.sampled_from(["2020", "2030", "NULL"])),
    st.tuples(st.just("elsewhere"), years),
    st.tuples(st.just("rollback"), st.integers(1, 2)),
    st.tuples(st.just("compact"), st.booleans()),
    st.tuples(st.just("fail"), st.integers(0, 2)),
)


class World:
    """Does to a lake what a step says."""

    def __init__(self, farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
        self.farm = farm
        self.lake = farm.declare(BY_GEO, SORTED)
        self.monkeypatch = monkeypatch

    def source(self, year: int) -> None:
        self.farm.years(year, salt=next(NUMBERS) * 10)
        self.lake.apply(overwrite_edits=True)

    def update(self, year: int) -> None:
        self.lake.sql(f"UPDATE income SET value = value + 1 WHERE year = {year}")

    def delete(self, geo: str) -> None:
        self.lake.sql(f"DELETE FROM income WHERE geo = '{geo}'")

    def insert(self, year: str) -> None:
        self.lake.sql(f"INSERT INTO income (year, geo, value) VALUES ({year}, 'g5', {next(NUMBERS)})")

    def elsewhere(self, year: int) -> None:
        self.lake.spark.sql(f"UPDATE lake.db.income SET note = 'x' WHERE year = {year} AND value % 2 = 0")

    def rollback(self, back: int) -> None:
        history = [entry.snapshot_id for entry in reversed(self.lake.table("income").history())]
        ancestry = [one.snapshot_id for one in self.farm.base.ancestry]
        wanted = next((number for number in history[back:] if number in ancestry), None)
        if wanted is not None:
            self.lake.rollback("income", wanted)

    def compact(self, base: bool) -> None:
        table = "income" if base else self.farm.alternates["by_geo"].table
        self.lake.spark.sql(
            f"CALL lake.system.rewrite_data_files(table => 'db.{table}', options => map('rewrite-all', 'true'))"
        )

    def fail(self, after: int) -> None:
        """Commits of alternates fail from some point on, while a batch changes."""
        whole = AlternatePublisher.publish
        passed = itertools.count()

        def publish(*given: Any) -> Any:
            if next(passed) >= after:
                raise OSError("the disk is full")
            return whole(*given)

        with self.monkeypatch.context() as patched:
            patched.setattr(AlternatePublisher, "publish", publish)
            self.source(YEARS[after])


@settings(
    max_examples=40 if LONG else 3,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(steps, min_size=3, max_size=8 if LONG else 4))
def test_alternates_hold_the_rows_of_their_base_after_any_history(
    make_lake: Callable[..., Lake],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    done: list[tuple[str, Any]],
) -> None:
    farm = Farm(make_lake, tmp_path / f"world-{next(NUMBERS)}")
    farm.years(*YEARS)
    world = World(farm, monkeypatch)
    world.lake.apply()
    for verb, argument in done:
        getattr(world, verb)(argument)
        farm.assert_honest()
    assert world.lake.apply(overwrite_edits=True).complete
    farm.assert_in_step("by_geo", "by_value")
