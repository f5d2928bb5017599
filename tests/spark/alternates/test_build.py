"""Alternates are built in the pass that loads their base, and from the base where that pass is over."""

from __future__ import annotations

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
