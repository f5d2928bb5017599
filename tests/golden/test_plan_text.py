"""Plans as `relayout plan` shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rich.cells import cell_len

from relayout.ingest.advice import Forecast
from relayout.ingest.plan import (
    OVERWRITE_EDITS,
    PRUNE,
    Action,
    Change,
    Cost,
    Drop,
    IngestPlan,
    PlannedBatch,
    Reason,
    TablePlan,
)
from relayout.report.plan_text import losses, plan_text
from relayout.table.batches import BatchKey

Golden = Callable[[str, str], None]

KERNEL = "DuckDB inside Spark tasks reads and lays out whole files"
PLAN_ID = "2afb03592a231718e68413a96e4bdbce"


def batch(year: int | None, reason: Reason = Reason.NEW, **told: Any) -> PlannedBatch:
    values: dict[str, Any] = {
        "key": BatchKey((("year", year),)),
        "action": Action.LOAD,
        "reason": reason,
        "files": 2,
        "size_bytes": 13_772,
        "rows_estimate": 1_234,
        "fingerprint": "5d1c4c2f0c6e1b0b8f8a6f7e2b9d3a41",
        "schema_hash": "0f3c9f0b6a51d2e7-6d1d2f0a",
    }
    return PlannedBatch(**values | told)


def table(name: str, batches: tuple[PlannedBatch, ...] = (), **told: Any) -> TablePlan:
    values: dict[str, Any] = {
        "table": name,
        "layout": "year, sorted by geo_fips",
        "layout_before": "",
        "change": Change.NONE,
        "schema": (("geo_fips", "string"), ("value", "long"), ("year", "int")),
        "schema_changes": (),
        "base_snapshot_id": 8_262_347_194_573_409_892,
        "engine": "kernel",
        "engine_reason": KERNEL,
        "batches": batches,
        "done": 0,
    }
    return TablePlan(**values | told)


def planned(*tables: TablePlan, drops: tuple[Drop, ...] = ()) -> IngestPlan:
    return IngestPlan(tables, drops, PLAN_ID)


@pytest.fixture
def new_table() -> IngestPlan:
    return planned(
        table(
            "regional_income",
            tuple(batch(year) for year in range(2019, 2024)),
            change=Change.CREATE,
            base_snapshot_id=None,
            forecast=Forecast(5, 20_290, 6_170, 1, (("year", 5),)),
            advice=(
                (
                    "files of about 4.1 kB, the target is over 100 MB: "
                    "partition by fewer or coarser columns, or compact after loading"
                ),
            ),
            cost=Cost(5, 10, 68_860, 6_170),
        )
    )


@pytest.fixture
def mixed() -> IngestPlan:
    income = table(
        "regional_income",
        (
            batch(2015, Reason.FAILED_BEFORE),
            batch(2016, Reason.NEW, rows_estimate=None),
            batch(2017, Reason.SOURCE_CHANGED, changes=("added downloads/CAINC1_2017_state.json",)),
            batch(2018, Reason.SOURCE_REMOVED, changes=("removed downloads/CAINC1_2018_state.json",), needs=PRUNE),
            batch(2019, Reason.SOURCE_REMOVED, action=Action.REMOVE, files=0, rows_estimate=240, needs=PRUNE),
            batch(2020, Reason.INVALIDATED),
            batch(
                2021,
                Reason.SOURCE_CHANGED,
                changes=("changed downloads/CAINC1_2021_county.json.gz",),
                blocked="downloads/CAINC1_2021_county.json.gz: torn gzip: the file ends before its data does",
            ),
            batch(
                2022,
                Reason.SOURCE_CHANGED,
                changes=(
                    *(f"added downloads/CAINC1_2022_{part}.json" for part in range(5)),
                    "added 7 more",
                    "edited: rows of this batch were changed by snapshot 17, which was not an ingestion",
                ),
                needs=OVERWRITE_EDITS,
            ),
            batch(
                2023,
                Reason.SCHEMA_CHANGED,
                files=3_200,
                size_bytes=1_500_000_000,
                rows_estimate=12_345_678,
                parts=4,
                warnings=(
                    (
                        "Batch {year=2023} estimated at 1.5 GB, threshold is 1 GB. "
                        "Consider finer batch_partition_columns (add geo_fips, line_code)."
                    ),
                ),
            ),
            batch(None, Reason.LAYOUT_CHANGED, action=Action.REWRITE, files=0),
        ),
        change=Change.EVOLVE,
        schema_changes=("add note string", "widen value from int to long"),
        engine="spark",
        engine_reason="columns value_usd are Spark SQL expressions",
        done=4,
        kept_without_source=("{year=2009}: all its source files are gone, its rows stay",),
        gaps=("{year=2011}", "{year=2012}"),
        bad_files=(("downloads/CAINC1_2021_county.json.gz", "torn gzip: the file ends before its data does"),),
        notes=("column 'code' is long in a.json, but string in b.json; read as string",),
        cost=Cost(6, 3_208, 1_500_068_860, None),
    )
    return planned(
        income,
        table("counties", layout="unpartitioned", done=1),
        table(
            "employment",
            problem="what   no source file matches\nwhere  downloads/employment/*.csv\nnext   mount the disk",
        ),
        drops=(Drop("old_income", 1_600), Drop("older_income", None)),
    )


def test_a_new_table(golden: Golden, new_table: IngestPlan) -> None:
    golden("plan_new_table.txt", plan_text(new_table))


def test_every_reason_and_everything_that_holds_a_batch_up(golden: Golden, mixed: IngestPlan) -> None:
    golden("plan_mixed.txt", plan_text(mixed))


def test_nothing_to_do(golden: Golden) -> None:
    golden("plan_nothing_to_do.txt", plan_text(planned(table("regional_income", done=5), table("counties", done=1))))


def test_a_changed_layout_of_many_batches(golden: Golden) -> None:
    batches = tuple(
        batch(year, Reason.NEW if year < 1999 else Reason.LAYOUT_CHANGED, files=140, size_bytes=95_000_000)
        for year in range(1524, 2024)
    )
    migration = table(
        "regional_income",
        (*batches[:-1], batch(2023, Reason.LAYOUT_CHANGED, blocked="downloads/a.json: line 3: cut JSON")),
        layout="year / geo_fips",
        layout_before="year / geo_fips_set / tablename / line_code / geo_fips",
        change=Change.RELAYOUT,
        forecast=Forecast(16_000, 70_400_000_000, 12_300_000, 2, (("year", 500), ("geo_fips", 3_200))),
        advice=(
            (
                "about 16,000 files, the target is under 10,000: partition by fewer or coarser columns, "
                "and move the rest into `sort`"
            ),
            (
                "geo_fips has 3,200 or more values, the target is under 1,000 per level: "
                "use `transform: bucket[16]` on it, or put it into `sort`"
            ),
        ),
        cost=Cost(499, 69_860, 47_405_000_000, 615_766),
    )
    golden("plan_migration.txt", plan_text(planned(migration), most_batches=3))


def test_batches_that_need_attention_come_first_and_within_the_limit(mixed: IngestPlan) -> None:
    lines = plan_text(mixed, most_batches=5).splitlines()
    shown = [line.split()[0] for line in lines if line.startswith("  {")]
    assert shown == ["{year=2021}", "{year=2018}", "{year=2019}", "{year=2022}", "{year=2023}"]
    assert "  … and 5 more: 1 failed before, 1 new, 1 source changed, 1 invalidated, 1 layout changed" in lines
    counted = next(line for line in plan_text(mixed, most_batches=1).splitlines() if "more:" in line)
    assert counted == (
        "  … and 9 more: 2 source removed, 2 source changed, 1 schema changed, 1 failed before, 1 new, 1 invalidated, "
        "1 layout changed (2 left without --prune, 1 left without --overwrite-edits, 1 with a warning)"
    )


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_width_is_kept_as_far_as_words_allow(mixed: IngestPlan, width: int) -> None:
    lines = [line for line in plan_text(mixed, width=width).splitlines() if "/" not in line and "…" not in line]
    assert [line for line in lines[:-2] if cell_len(line) > width] == []


@pytest.mark.parametrize(
    ("tables", "drops", "last"),
    [
        ([table("t", (batch(1),))], (), "Next: relayout apply"),
        ([table("t", change=Change.CREATE)], (), "Next: relayout apply"),
        ([table("t", (batch(1, needs=PRUNE),))], (), "Next: relayout apply --prune"),
        ([table("t")], (Drop("old", 1),), "Next: relayout apply --prune"),
        (
            [table("t", (batch(1, needs=OVERWRITE_EDITS), batch(2)))],
            (Drop("old", 1),),
            "Next: relayout apply (with --prune --overwrite-edits for what is marked so)",
        ),
        (
            [table("t", (batch(1, blocked="a.json: cut"),))],
            (),
            "Next: correct what is named above, then relayout apply",
        ),
        ([table("t", bad_files=(("a.json", "cut"),))], (), "Next: correct what is named above, then relayout apply"),
        ([table("t", problem="what   no")], (), "Next: correct what is named above, then relayout apply"),
        ([table("t", done=3)], (), "Nothing to do: 3 batches in 1 table done"),
        ([], (), "Nothing to do: 0 batches in 0 tables done"),
    ],
)
def test_the_last_line_is_the_next_command(tables: list[TablePlan], drops: tuple[Drop, ...], last: str) -> None:
    assert plan_text(planned(*tables, drops=drops)).splitlines()[-1] == last


def test_names_from_outside_cannot_act_on_the_terminal() -> None:
    key = BatchKey((("kind\n", "a\x1b[31mb"),))
    hostile = table("t\x07", (batch(1, key=key, changes=("added \u202e.json",)),), bad_files=(("x\ny", "r\r"),))
    text = plan_text(planned(hostile))
    assert all(line.isprintable() for line in text.split("\n"))
    assert "{kind\\n=a\\x1b[31mb}" in text


def test_losses_name_what_the_given_flags_take_away(mixed: IngestPlan) -> None:
    assert losses(mixed, prune=False, overwrite_edits=False) == []
    assert losses(mixed, prune=True, overwrite_edits=False) == [
        "table old_income is dropped (1,600 rows)",
        "table older_income is dropped (rows not known)",
        "regional_income: batch {year=2018} loses the rows of source files that are gone",
        "regional_income: batch {year=2019} is removed (240 rows)",
    ]
    assert losses(mixed, prune=False, overwrite_edits=True) == [
        "regional_income: batch {year=2022} loses what was changed in it since it was loaded"
    ]


def test_losses_of_a_plan_that_only_loads_are_none(new_table: IngestPlan) -> None:
    assert losses(new_table, prune=True, overwrite_edits=True) == []
