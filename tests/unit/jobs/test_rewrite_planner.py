"""Plans of a table with three specs that PyIceberg wrote: no engine is needed to see what would be rewritten."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, IsNull, Not
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

from relayout import FilterStats, PlanRefused, RewritePlanner, UsageError
from relayout.compact.members import files_of
from relayout.compact.plan import CompactPlan
from relayout.jobs import candidate_spool, rewrite_groups
from relayout.jobs.skipping import skipping_of
from relayout.report.compact_text import compact_plan_text
from relayout.table.partition_keys import PartitionKey

REGIONS = ["asia", "eu", "us", None]


def rows(year: int, month: int) -> pa.Table:
    """Four rows of one month, one per region."""
    return pa.table(
        {
            "id": pa.array(range(month * 10, month * 10 + 4), "int64"),
            "region": pa.array(REGIONS, "string"),
            "ts": pa.array([datetime(year, month, 1 + day) for day in range(4)], pa.timestamp("us")),  # noqa: DTZ001
        }
    )


@pytest.fixture(scope="module", params=["1", "2"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two files without partitions, two loads by region (of 2024), three by month; version 1 keeps a void field."""
    folder = tmp_path_factory.mktemp("evolved")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "region", StringType()), NestedField(3, "ts", TimestampType())
    )
    made = catalog.create_table("db.t", schema, properties={"format-version": request.param})
    for month in (1, 2):
        made.append(rows(2023, month))
    with made.update_spec() as change:
        change.add_field("region", IdentityTransform(), "region")
    for month in (1, 2):
        made.append(rows(2024, month))
    with made.update_spec() as change:
        change.remove_field("region")
        change.add_field("ts", MonthTransform(), "month")
    for month in (1, 1, 3):
        made.append(rows(2024, month))
    return catalog.load_table("db.t")


def planned(table: Table, **options: Any) -> CompactPlan:
    return RewritePlanner(table, {"min-input-files": 2, **options}).plan()


def labels(plan: CompactPlan) -> list[tuple[int, str, int]]:
    return [(group.spec_id, group.label, group.input_files) for group in plan.groups]


def test_an_evolved_table_is_planned_spec_by_spec(table: Table) -> None:
    plan = planned(table)
    assert labels(plan) == [
        (0, "", 2),
        (1, "region=asia", 2),
        (1, "region=eu", 2),
        (1, "region=us", 2),
        (1, "region=null", 2),
        (2, "month=2024-01", 2),
    ]
    assert plan.skipped == (("too few", 1),)
    assert plan.filter_stats == FilterStats()
    assert plan.groups[5].files.data[0].content["partition"][-1] == 648
    assert plan.groups[5].partition in ({"month": 648}, {"region": None, "month": 648})


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("region = 'eu' AND year(ts) = 2024", [(0, "", 2), (1, "region=eu", 2), (2, "month=2024-01", 2)]),
        (
            And(EqualTo("region", "eu"), GreaterThanOrEqual("ts", "2024-02-01T00:00:00")),
            [(0, "", 2), (1, "region=eu", 2)],
        ),
        (
            Not(IsNull("region")),
            [(0, "", 2), (1, "region=asia", 2), (1, "region=eu", 2), (1, "region=us", 2), (2, "month=2024-01", 2)],
        ),
        ("region IS NULL AND month(ts) = 3", [(0, "", 2), (1, "region=null", 2)]),
        (
            "ts < '2024-01-01'",
            [(0, "", 2), (1, "region=asia", 2), (1, "region=eu", 2), (1, "region=us", 2), (1, "region=null", 2)],
        ),
    ],
)
def test_a_filter_is_applied_by_each_spec(table: Table, where: Any, expected: list[tuple[int, str, int]]) -> None:
    plan = planned(table, partition_filter=where)
    assert labels(plan) == expected
    assert plan.filter_stats == FilterStats()


def test_statistics_are_noted_and_prune_only_when_asked(table: Table) -> None:
    noted = planned(table, partition_filter="ts < '2024-01-01'")
    verdicts = {group.label: {file.verdict for file in group.files.data} for group in noted.groups}
    assert verdicts[""] == {"must"}
    assert verdicts["region=eu"] == {"cannot"}
    pruned = planned(table, partition_filter="ts < '2024-01-01'", prune_by_statistics=True)
    assert labels(pruned) == [(0, "", 2)]
    assert dict(pruned.skipped) == {"filter": 3, "statistics": 8}


def test_what_fails_open_is_counted_among_candidates(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    of = PartitionKey.of

    def damaged(spec: Any, values: Any) -> PartitionKey:
        return of(spec, ["?" for _ in values] if spec.spec_id == 2 and values[-1] == 648 else values)

    monkeypatch.setattr(PartitionKey, "of", damaged)
    result = RewritePlanner(table, {"partition_filter": "ts >= '2024-01-20'"}).plan_with_stats()
    assert result.filter_stats == FilterStats(0, 1, 1, 2)
    assert [warning.code for warning in result.plan.warnings] == ["evaluation-error"]
    with pytest.raises(PlanRefused, match="partition"):
        RewritePlanner(table, {"partition_filter": "ts >= '2024-01-20'", "strict": True}).plan()
    large = {"target-file-size-bytes": 100, "min-file-size-bytes": 1, "max-file-size-bytes": 1 << 30}
    result = RewritePlanner(table, {**large, "partition_filter": "ts >= '2024-01-20'"}).plan_with_stats()
    assert result.filter_stats == FilterStats(0, 1, 1, 0), "no file is a candidate"


def test_group_ids_are_the_same_on_every_run(table: Table) -> None:
    first, again = planned(table), planned(table)
    assert first == again
    assert first.plan_id == again.plan_id
    assert [group.group_id for group in first.groups] == list(range(6))
    turned = planned(table, **{"rewrite-job-order": "bytes-desc"})
    assert sorted((group.group_id, group.digest) for group in turned.groups) == [
        (group.group_id, group.digest) for group in first.groups
    ]


def test_migration_writes_each_target_partition_once(table: Table) -> None:
    plan = RewritePlanner(table, {"mode": "migrate"}).plan()
    assert [(group.spec_id, group.output_spec_id, group.label, group.input_files) for group in plan.groups] == [
        (0, 2, "month=2023-01", 1),
        (0, 2, "month=2023-02", 1),
        (1, 2, "month=2024-01", 4),
        (1, 2, "month=2024-02", 4),
    ]
    assert plan.skipped == (("current spec", 3),)
    assert plan.forecast is not None
    assert (plan.forecast.partitions_before, plan.forecast.partitions_after) == (5, 4)
    back = RewritePlanner(table, {"mode": "migrate", "output_spec_id": 1}).plan()
    assert [(group.spec_id, group.label, group.partition) for group in back.groups] == [(-1, "region=…us", {})]
    assert "specs -> 1: region=…us" in compact_plan_text(back)
    assert "become about 1 in an unknown number of partitions of spec 1" in compact_plan_text(back)
    with pytest.raises(UsageError, match="no partition spec 7"):
        RewritePlanner(table, {"mode": "migrate", "output_spec_id": 7}).plan()


def test_a_damaged_tuple_does_not_stop_migration(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    of = PartitionKey.of
    monkeypatch.setattr(PartitionKey, "of", lambda spec, values: of(spec, ["?" for _ in values]))
    plan = RewritePlanner(table, {"mode": "migrate", "output_spec_id": 1, "min-input-files": 1})
    assert plan.plan().files_before == 5


def test_a_large_plan_keeps_its_members_beside_it(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = planned(table)
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path))
    monkeypatch.setattr(rewrite_groups, "MOST_IN_PLAN", 3)
    monkeypatch.setattr(candidate_spool, "IN_MEMORY", 2)
    large = planned(table)
    assert large.plan_id == small.plan_id
    assert [files_of(group) for group in large.groups] == [group.files for group in small.groups]
    again = CompactPlan.from_json(json.loads(json.dumps(large.to_json())))
    assert files_of(again.groups[0]) == small.groups[0].files
    with pytest.raises(UsageError, match="are kept in"):
        _ = large.groups[0].files


def test_a_manifest_of_an_unknown_spec_is_an_error(table: Table) -> None:
    known = [spec for spec in table.metadata.partition_specs if spec.spec_id != 0]
    metadata = table.metadata.model_copy(update={"partition_specs": known})
    damaged = Table(("db", "t"), metadata, table.metadata_location, table.io, table.catalog)
    with pytest.raises(PlanRefused, match="partition spec 0, which the table does not have"):
        RewritePlanner(damaged, {"mode": "keep-spec"}).plan()


def test_mistakes_are_told_before_anything_is_read(table: Table) -> None:
    with pytest.raises(UsageError, match="did you mean 'region'"):
        planned(table, partition_filter="regoin = 'eu'")
    with pytest.raises(UsageError, match="cannot be compared"):
        planned(table, partition_filter="id = 'eu'")
    assert labels(planned(table, partition_filter="REGION = 'eu'", case_sensitive=False))
    with pytest.raises(UsageError, match="mode to migrate"):
        planned(table, output_spec_id=1)


def test_what_a_condition_need_not_read_is_measured(table: Table) -> None:
    by_region, by_time, nothing = skipping_of(table, ["REGION = 'eu'", "ts < '2023-02-01'", "id >= 0"])
    assert (by_region.files, by_region.skipped_files) == (13, 6), "statistics tell nothing of the other seven"
    assert (by_time.files, by_time.skipped_files) == (13, 12)
    assert 0.9 < by_time.share < 1
    assert nothing.to_json()["share"] == 0.0
