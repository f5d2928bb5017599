"""Alternates are built in the pass that loads their base, and from the base where that pass is over."""

from __future__ import annotations

import random

from relayout.commit.receipts import Outcome
from relayout.table.alternate_plans import Step
from tests.spark.alternates.conftest import BY_GEO, SORTED, Farm


def test_base_and_alternates_come_from_one_pass(farm: Farm) -> None:
    farm.years(2020, 2021)
    lake = farm.declare(BY_GEO, SORTED)
    (planned,) = lake.plan().tables
    assert [(one.name, one.step) for one in planned.alternates] == [("by_geo", Step.CREATE), ("by_value", Step.CREATE)]
    receipt = lake.apply()
    assert receipt.complete
    assert [(one.name, one.action, one.outcome, one.rows) for one in receipt.tables[0].alternates] == [
        ("by_geo", "built with the base", Outcome.DONE, 12),
        ("by_value", "built with the base", Outcome.DONE, 12),
    ]
    farm.assert_in_step("by_geo", "by_value")
    assert not lake.plan().has_work
    assert [row.tableName for row in lake.sql("SHOW TABLES").collect()] == ["income", "relayout_ledger"]
    assert len(lake.sql("SHOW TABLES LIKE '_mv_*'").collect()) == 2


def test_an_alternate_declared_later_is_built_from_the_base(farm: Farm) -> None:
    farm.years(2020, 2021)
    farm.declare().apply()
    lake = farm.declare(BY_GEO)
    receipt = lake.apply()
    assert [(one.action, one.rows) for one in receipt.tables[0].alternates] == [("built", 12)]
    assert receipt.tables[0].batches == ()
    farm.assert_in_step("by_geo")


def test_only_changed_batches_are_laid_out_again(farm: Farm) -> None:
    farm.years(2020, 2021, 2022)
    farm.declare(BY_GEO).apply()
    farm.years(2021, salt=100)
    farm.years(2023)
    receipt = farm.lake.apply()
    assert [one.rows for one in receipt.tables[0].alternates] == [12]
    farm.assert_in_step("by_geo")


def test_a_curve_keeps_rows_together_that_are_near_in_several_columns(farm: Farm) -> None:
    grid = [{"x": x, "y": y} for x in range(16) for y in range(16)]
    farm.source(2020, *random.Random(1).sample(grid, len(grid)))
    by_curve = {"name": "near", "cluster": {"curve": "hilbert", "by": ["x", "y"]}}
    lake = farm.declare(by_curve, {"name": "z", "cluster": {"curve": "zorder", "by": ["y", "x"]}})
    lake.apply()
    farm.assert_in_step("near", "z")
    for name in ("near", "z"):
        rows = lake.table(farm.alternates[name].table).scan(selected_fields=("x", "y")).to_arrow().to_pylist()
        for start in range(0, 256, 64):
            # A quarter of rows that were sorted by one column would span all sixteen values of the other.
            part = rows[start : start + 64]
            assert all(max(row[axis] for row in part) - min(row[axis] for row in part) < 12 for axis in "xy"), name
    farm.declare(by_curve, {"name": "late", "cluster": {"curve": "hilbert", "by": ["y", "x"]}}).apply()
    farm.assert_in_step("late")
