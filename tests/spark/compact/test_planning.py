"""Plans of rewrites on tables that Spark evolved: which files, in which groups, with which deletes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import relayout
from relayout.api import Lake
from relayout.compact.plan import CompactPlan, FileGroup
from tests.spark.conftest import MakeLake

pytestmark = pytest.mark.spark

ALL = {"rewrite_all": True}


@pytest.fixture(scope="module", params=[2, 3])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def lake(
    make_lake: MakeLake,
    tmp_path_factory: pytest.TempPathFactory,
    evolve: Callable[[Lake, str, int], None],
    version: int,
) -> Lake:
    """A lake with the evolved table `t`."""
    opened = make_lake(tmp_path_factory.mktemp("planning"), {})
    opened.sql("CREATE NAMESPACE IF NOT EXISTS db")
    evolve(opened, "t", version)
    return opened


def plan_of(lake: Lake, **options: Any) -> CompactPlan:
    return relayout.RewritePlanner(lake.table("t"), options).plan()


def paths(plan: CompactPlan) -> set[str]:
    return {file.path for group in plan.groups for file in group.files.data}


def test_every_live_file_is_in_one_group_of_its_own_partition(lake: Lake) -> None:
    plan = plan_of(lake, **ALL)
    files = lake.sql("SELECT file_path, spec_id, record_count, file_size_in_bytes FROM db.t.data_files").collect()
    told = {row[0]: tuple(row[1:]) for row in files}
    planned = [(file, group) for group in plan.groups for file in group.files.data]
    assert len(planned) == len(told) == plan.files_before
    for file, group in planned:
        assert told[file.path] == (group.spec_id, file.rows, file.size_bytes)
        assert file.content["spec-id"] == group.spec_id == group.output_spec_id
    keys = [(group.spec_id, json.dumps(group.partition)) for group in plan.groups]
    assert len(set(keys)) == len(keys), "one group per partition, none across"
    assert {group.spec_id for group in plan.groups} == {0, 1, 2, 4}
    assert [group.partition for group in plan.groups if group.spec_id == 0] == [None]


def test_tuples_are_told_as_iceberg_tells_them(lake: Lake) -> None:
    plan = plan_of(lake, **ALL)
    told = {row[0]: row[1] for row in lake.sql("SELECT file_path, partition FROM db.t.data_files").collect()}
    for group in plan.groups:
        for file in group.files.data:
            partition = {name: value for name, value in told[file.path].asDict().items() if value is not None}
            assert {name: value for name, value in (group.partition or {}).items() if value is not None} == partition


FILTERS = [
    "region = 'eu'",
    "region = 'eu' AND year(ts) = 2024",
    "region IS NULL",
    "NOT (region = 'eu' OR ts < TIMESTAMP_NTZ '2024-03-01 00:00:00')",
    "region IN ('us', 'asia') AND month(ts) = 5",
    "region LIKE 'as%'",
    "id BETWEEN 40 AND 45",
    "id = 57",
    "price > 60.5 AND tag = 't0'",
    "date(ts) = DATE '2024-02-11'",
    "hour(ts) >= 7",
    "region <> 'eu'",
]


@pytest.fixture(scope="module")
def answers(lake: Lake) -> dict[str, dict[str, list[bool]]]:
    """For each filter and file, what Spark says of the file's rows; one query for all."""
    conditions = ", ".join(f"coalesce({where}, false)" for where in FILTERS)
    told: dict[str, dict[str, list[bool]]] = {where: defaultdict(list) for where in FILTERS}
    for file, *matches in lake.sql(f"SELECT _file, {conditions} FROM t").collect():
        for where, match in zip(FILTERS, matches, strict=True):
            told[where][file].append(match)
    return told


@pytest.mark.parametrize("where", FILTERS)
def test_no_file_with_a_matching_row_is_left_out(
    lake: Lake, answers: dict[str, dict[str, list[bool]]], where: str
) -> None:
    matching = {file for file, rows in answers[where].items() if any(rows)}
    loose = plan_of(lake, **ALL, where=where)
    pruned = plan_of(lake, **ALL, where=where, prune_by_statistics=True)
    assert matching
    assert matching <= paths(pruned) <= paths(loose)
    assert len(paths(pruned)) < len(answers[where]) or where == "hour(ts) >= 7", "a filter that keeps all proves little"
    must = {file.path for group in pruned.groups for file in group.files.data if file.verdict == "must"}
    assert all(all(answers[where][file]) for file in must), "every row of such a file matches"
    assert loose.filter_stats == relayout.FilterStats()


def test_old_specs_judge_the_filter_by_their_own_fields(lake: Lake) -> None:
    plan = plan_of(lake, **ALL, where="region = 'eu' AND ts < '2024-01-01'")
    by_spec: dict[int, set[str]] = defaultdict(set)
    for group in plan.groups:
        by_spec[group.spec_id].add(group.label)
    assert by_spec[0] == {""}, "an unpartitioned file is always included"
    assert by_spec[1] == {"region=eu"}
    assert all(label.startswith("region=eu/ts_month=2023-") for label in by_spec[2])
    assert all(label.startswith("ts_month=2023-") for label in by_spec[4])


def test_each_file_has_the_deletes_that_apply_to_it(lake: Lake, version: int) -> None:
    plan = plan_of(lake, **ALL)
    expected: dict[str, set[str]] = {file.path: set() for group in plan.groups for file in group.files.data}
    if version == 2:
        for task in lake.table("t").scan().plan_files():
            expected[task.file.file_path] = {delete.file_path for delete in task.delete_files}
    else:
        vectors_told = lake.sql("SELECT referenced_data_file, file_path FROM db.t.delete_files").collect()
        expected |= {row[0]: {row[1]} for row in vectors_told}
    listed = {
        file.path: {delete.path for delete in group.files.deletes_of(file)}
        for group in plan.groups
        for file in group.files.data
    }
    assert listed == expected
    assert sum(bool(deletes) for deletes in listed.values()) == 3
    vectors = [delete.content for group in plan.groups for delete in group.files.deletes]
    assert all(("content-offset" in delete) == (version == 3) for delete in vectors)
    rows = {file.first_row_id for group in plan.groups for file in group.files.data}
    assert (None in rows) == (version == 2)
    if version == 3:
        lineage = lake.sql("SELECT _file, min(_row_id - _pos) FROM t GROUP BY _file").collect()
        first = {file.path: file.first_row_id for group in plan.groups for file in group.files.data}
        assert {row[0]: row[1] for row in lineage} == {path: first[path] for path in {row[0] for row in lineage}}


def test_thresholds_choose_as_iceberg_names_them(lake: Lake) -> None:
    assert plan_of(lake).skipped != ()
    few = plan_of(lake, **{"min-input-files": "2"})
    assert all(group.input_files >= 2 for group in few.groups if "deletes" not in group.reason)
    sized = {"target-file-size-bytes": 2, "min-file-size-bytes": 1, "max-file-size-bytes": 1 << 30}
    assert plan_of(lake, **sized, **{"delete-ratio-threshold": 1.0}).groups == ()
    deleted = plan_of(lake, **sized, **{"delete-file-threshold": 1, "delete-ratio-threshold": 1.0})
    assert deleted.files_before == 3
    assert {group.reason for group in deleted.groups} == {"1 file with deletes"}


def test_the_same_table_gives_the_same_plan_in_every_order_of_jobs(lake: Lake) -> None:
    first, again = plan_of(lake, **ALL), plan_of(lake, **ALL)
    assert first == again
    assert first.plan_id == again.plan_id
    assert [group.group_id for group in first.groups] == list(range(len(first.groups)))
    by_id: dict[int, FileGroup] = {group.group_id: group for group in first.groups}
    for order, measure in (("bytes-desc", "input_bytes"), ("files-asc", "input_files")):
        groups = plan_of(lake, **ALL, rewrite_job_order=order).groups
        assert all(by_id[group.group_id].digest == group.digest for group in groups)
        values = [getattr(group, measure) for group in groups]
        assert values == sorted(values, reverse=order.endswith("desc"))


@pytest.mark.parametrize(("target", "terms"), [(4, "ts_month, id_bucket"), (1, "region"), (0, "")])
def test_migration_takes_other_specs_only_and_shares_no_target_partition(lake: Lake, target: int, terms: str) -> None:
    plan = plan_of(lake, mode="migrate", output_spec_id=target)
    assert paths(plan) == {
        row[0] for row in lake.sql(f"SELECT file_path FROM db.t.data_files WHERE spec_id <> {target}").collect()
    }
    column = {
        "ts_month": "date_trunc('month', ts)",
        "id_bucket": "lake.system.bucket(2, id)",
        "region": "region",
        "": "1",
    }
    keys = ", ".join(column[term] for term in terms.split(", "))
    lies_in = defaultdict(set)
    for row in lake.sql(f"SELECT _file, {keys} FROM t").collect():
        lies_in[row[0]].add(tuple(row[1:]))
    seen: dict[Any, int] = {}
    for group in plan.groups:
        assert group.output_spec_id == target
        for file in group.files.data:
            for partition in lies_in[file.path]:
                assert seen.setdefault(partition, group.group_id) == group.group_id, "written by two groups"
    assert plan.forecast is not None
    assert plan.forecast.files_before == plan.files_before
    if plan.forecast.partitions_after is not None:
        assert len(seen) <= plan.forecast.partitions_after


def test_the_command_line_shows_the_plan_and_what_is_pending(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    from relayout.cli import app

    folder = str(Path(lake.config.file).parent)
    call = ["-c", folder, "compact", "db.t", "--where", "REGION = 'eu'", "--dry-run"]
    assert app([*call, "--json"], standalone_mode=False) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "compact-plan"
    assert CompactPlan.from_json(told).to_json() == told
    assert app(call, standalone_mode=False) == 1
    text = capsys.readouterr().out
    assert "where      REGION = 'eu'" in text
    assert "spec 1: region=eu" in text
    assert app(["-c", folder, "compact", "t", "--where", "id < 0", "--dry-run"], standalone_mode=False) == 0
    assert "Nothing to do" in capsys.readouterr().out


def test_a_spec_whose_column_is_gone_fails_open_and_strict_refuses(lake: Lake, version: int) -> None:
    lake.sql(
        "CREATE TABLE gone (id BIGINT, region STRING, note STRING) USING iceberg PARTITIONED BY (region)"
        f" TBLPROPERTIES ('format-version' = '{version}')"
    )
    lake.sql("INSERT INTO gone VALUES (1, 'eu', 'a'), (2, 'us', 'b'), (3, NULL, 'c')")
    lake.sql("ALTER TABLE gone DROP PARTITION FIELD region")
    lake.sql("ALTER TABLE gone ADD PARTITION FIELD note")
    lake.sql("ALTER TABLE gone DROP COLUMN region")
    lake.sql("INSERT INTO gone VALUES (4, 'a'), (5, 'b')")
    table = lake.table("gone")
    result = relayout.RewritePlanner(table, {**ALL, "partition_filter": "note = 'a'"}).plan_with_stats()
    assert isinstance(result, relayout.RewriteDataFilesPlanningResult)
    assert result.filter_stats == relayout.FilterStats(1, 0, 3, 3)
    assert [group.partition for group in result.plan.groups] == [
        {"region": "eu"},
        {"region": "us"},
        {"region": None},
        {"note": "a"},
    ]
    assert [warning.code for warning in result.plan.warnings] == ["unevaluable-spec"]
    judged = {file.verdict for group in result.plan.groups for file in group.files.data}
    assert judged == {"must", "cannot"}, "statistics decide what the spec cannot"
    with pytest.raises(relayout.PlanRefused, match="no longer exists"):
        relayout.RewritePlanner(table, {**ALL, "partition_filter": "note = 'a'", "strict": True}).plan()
    moved = relayout.RewritePlanner(table, {"mode": "migrate"}).plan()
    assert [group.partition for group in moved.groups] == [{"note": "a"}, {"note": "b"}, {"note": "c"}]
    with pytest.raises(relayout.PlanRefused, match="no longer exists"):
        relayout.RewritePlanner(table, {"mode": "migrate", "output_spec_id": 0}).plan()


def test_an_empty_table_has_nothing_to_rewrite(lake: Lake) -> None:
    lake.sql("CREATE TABLE empty (id BIGINT) USING iceberg")
    plan = relayout.RewritePlanner(lake.table("empty")).plan()
    assert (plan.groups, plan.base_snapshot_id, plan.has_work) == ((), None, False)
    with pytest.raises(relayout.UsageError, match="did you mean 'min_input_files'"):
        relayout.RewritePlanner(lake.table("empty"), {"min-input-file": 3})
    with pytest.raises(relayout.UsageError, match="no column 'nothing'"):
        relayout.RewritePlanner(lake.table("empty"), {"partition_filter": "nothing = 1"}).plan()


def test_tuples_of_every_type_are_written_as_iceberg_itself_writes_them(lake: Lake, version: int) -> None:
    fields = "d, t, p, f, b, flag, s, bucket(3, s), truncate(10, n), years(d), hours(t), days(u)"
    lake.sql(
        "CREATE TABLE kinds (d DATE, t TIMESTAMP_NTZ, p DECIMAL(30, 4), f DOUBLE, b BINARY, flag BOOLEAN, s STRING, "
        f"n INT, u TIMESTAMP) USING iceberg PARTITIONED BY ({fields}) TBLPROPERTIES ('format-version' = '{version}')"
    )
    lake.sql(
        "INSERT INTO kinds VALUES "
        "(DATE '1969-12-31', TIMESTAMP_NTZ '1969-12-31 23:59:59.999999', -12345678901234567890.0001, -0.0D, X'00FF', "
        "false, 'a/b=c é', -1, TIMESTAMP '1969-12-31 23:59:59Z'), "
        "(DATE '2024-02-29', TIMESTAMP_NTZ '2024-02-29 00:00:00', 0.5, 1.5D, X'', true, '', 19, "
        "TIMESTAMP '2024-02-29 00:00:00Z'), "
        "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    jvm: Any = lake.spark._jvm
    java: Any = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(lake.spark._jsparkSession, "lake.db.kinds")
    tasks = java.newScan().planFiles().iterator()
    expected = {}
    while tasks.hasNext():
        task = tasks.next()
        told = json.loads(jvm.org.apache.iceberg.ContentFileParser.toJson(task.file(), task.spec()))
        expected[told["file-path"]] = told
    plan = relayout.RewritePlanner(lake.table("kinds"), ALL).plan()
    contents = [file.content for group in plan.groups for file in group.files.data]
    assert len(contents) == len(expected) == 3
    for content in contents:
        told = expected[content["file-path"]]
        assert {key: told[key] for key in content if key != "file-format"} == {
            key: value for key, value in content.items() if key != "file-format"
        }
        assert [json.dumps(value) for value in content["partition"]] == [json.dumps(v) for v in told["partition"]]
