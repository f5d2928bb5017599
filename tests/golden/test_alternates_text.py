"""Alternates in plans, receipts and status, as a reader sees them."""

from __future__ import annotations

from collections.abc import Callable

from relayout.commit.receipts import AlternateReceipt, Outcome, Receipt, TableReceipt
from relayout.ingest.plan import Change, Drop, IngestPlan, TablePlan
from relayout.report.plan_text import plan_text
from relayout.report.receipt_text import receipt_text
from relayout.report.status_alternates import alternate_lines
from relayout.table.alternate_plans import AlternatePlan, Step
from relayout.table.batches import BatchKey
from relayout.table.routing_counts import RoutingCounts
from relayout.upkeep.alternate_status import AlternatesStatus, AlternateStatus, Freshness

Golden = Callable[[str, str], None]

TABLE = "_mv_0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p"
LAYOUT = "bucket[16](geo_fips), sorted by geo_fips"
NOW = 1_700_000_000_000


def test_a_plan_says_what_alternates_cost_and_what_they_are_good_for(golden: Golden) -> None:
    helps = ("geo_fips = …", "geo_fips IN (…)")
    alternates = (
        AlternatePlan("by_fips", "", LAYOUT, Step.CREATE, "is new", (), 21_004, 1.0, helps),
        AlternatePlan("by_value", TABLE, "unpartitioned, sorted by value", Step.REFRESH, "is behind the table",
                      ("{year=2019}", "{year=2020}"), 19_000, 0.94, ("value = …", "value BETWEEN … AND …")),
        AlternatePlan("steady", TABLE, "year", Step.NONE, "", (), 20_290, 1.0),
        AlternatePlan("swapped", "", "geo_fips / year", Step.REFUSED,
                      "it only reorders the partition keys of the table, and the order of partition keys saves no file",
                      replacement="- name: swapped\n  partition: {keys: [{name: geo_fips, transform: 'bucket[16]'}]}\n"
                      "  sort: [geo_fips, year]"),
    )  # fmt: skip
    table = TablePlan(
        "regional_income", "year, sorted by geo_fips", "", Change.NONE, (), (), 7, "kernel", "", (), 5,
        alternates=alternates,
    )  # fmt: skip
    drop = Drop(TABLE, 480, "alternate by_code of regional_income, line_code: is no longer declared")
    golden("plan_alternates.txt", plan_text(IngestPlan((table,), (drop,), "2afb03592a231718e68413a96e4bdbce")))


def test_a_receipt_says_which_alternates_are_behind(golden: Golden) -> None:
    alternates = (
        AlternateReceipt("by_fips", TABLE, LAYOUT, "built", Outcome.DONE, 480, 16, 21_004, 0.71),
        AlternateReceipt("by_value", TABLE, "", "refreshed", Outcome.FAILED, note="No space left\non device"),
    )
    table = TableReceipt("regional_income", "none", (), 1.3, alternates=alternates)
    golden("receipt_alternates.txt", receipt_text(Receipt("2afb", "3f0d", (table,), 1.4)))


def test_status_points_at_what_is_stale_too_large_or_unused(golden: Golden) -> None:
    keys = (BatchKey((("year", 2019),)), BatchKey((("year", None),)))
    told = AlternatesStatus(
        (
            AlternateStatus("by_fips", TABLE, LAYOUT, True, Freshness.FRESH, 480, 16, 21_004, 1.04,
                            use=RoutingCounts("u", TABLE, 40, 30, 12, NOW - 3_600_000)),
            AlternateStatus("by_value", TABLE, "unpartitioned, sorted by value", True, Freshness.PARTLY, 470, 5, 19_000,
                            0.94, keys, use=RoutingCounts("u", TABLE, 40, 0, 0)),
            AlternateStatus("by_code", TABLE, "line_code", False, Freshness.STALE, 480, 9, 30_000, 1.48, (), True),
        ),
        4.46,
    )  # fmt: skip
    golden("status_alternates.txt", "\n".join(alternate_lines(told, NOW, 110)))
