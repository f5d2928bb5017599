"""A compaction plan is a value: it survives JSON, has one id, and an altered one is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relayout.compact.members import files_of
from relayout.compact.plan import Arrangement, CompactPlan, FileGroup, FilterStats, JobOrder, Mode
from relayout.errors import PlanRefused, UsageError
from relayout.table.rewrites import GroupFiles, MembersElsewhere, PlannedDelete, PlannedFile


def data_file(path: str, size: int = 10, **more: Any) -> PlannedFile:
    content = {"file-path": path, "file-size-in-bytes": size, "record-count": 3, "spec-id": 0, "partition": ["eu"]}
    return PlannedFile(content, data_sequence_number=1, **more)


def group_of(members: GroupFiles) -> FileGroup:
    return FileGroup(
        group_id=0,
        spec_id=0,
        partition={"region": "eu"},
        label="region=eu",
        output_spec_id=0,
        reason="3 small files",
        input_files=len(members.data),
        input_bytes=sum(file.size_bytes for file in members.data),
        input_rows=sum(file.rows for file in members.data),
        delete_files=len(members.deletes),
        expected_output_files=1,
        digest=members.digest(),
        members=members,
    )


def plan_of(*groups: FileGroup) -> CompactPlan:
    return CompactPlan(
        table="db.t",
        table_uuid="3b7c",
        base_snapshot_id=7,
        base_sequence_number=4,
        mode=Mode.KEEP_SPEC,
        target_spec_id=1,
        target_file_bytes=512_000_000,
        order=JobOrder.BYTES_DESC,
        arrangement=Arrangement.BINPACK,
        arrange_by=(),
        where="region = 'eu'",
        groups=groups,
        filter_stats=FilterStats(1, 0, 2, 5),
        skipped=(("large enough", 4),),
    )


MEMBERS = GroupFiles(
    (data_file("a", 10, deletes=(0,)), data_file("b", 20)), (PlannedDelete({"file-path": "d", "content": "x"}, 2),)
)


def test_a_plan_survives_json() -> None:
    plan = plan_of(group_of(MEMBERS))
    again = CompactPlan.from_json(json.loads(json.dumps(plan.to_json())))
    assert again == plan
    assert again.plan_id == plan.plan_id
    assert again.groups[0].files.deletes_of(again.groups[0].files.data[0]) == MEMBERS.deletes


@pytest.mark.parametrize(
    "path", [["where"], ["groups", 0, "input_bytes"], ["groups", 0, "files", "data", 0, "verdict"]]
)
def test_an_altered_plan_is_refused(path: list[Any]) -> None:
    told: Any = json.loads(json.dumps(plan_of(group_of(MEMBERS)).to_json()))
    place = told
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = "other"
    with pytest.raises(UsageError):
        CompactPlan.from_json(told)


def test_members_kept_beside_the_plan_do_not_change_its_id(tmp_path: Path) -> None:
    line = MEMBERS.canonical().encode()
    beside = tmp_path / "members.jsonl"
    beside.write_bytes(b"another line\n" + line + b"\n")
    within = group_of(MEMBERS)
    outside = replace(within, members=MembersElsewhere(str(beside), 13, len(line), MEMBERS.digest()))
    plan = CompactPlan.from_json(plan_of(outside).to_json())
    assert plan.plan_id == plan_of(within).plan_id
    assert files_of(plan.groups[0]) == MEMBERS
    beside.write_bytes(b"another line\n" + line.replace(b'"a"', b'"z"') + b"\n")
    with pytest.raises(PlanRefused, match="does not match"):
        files_of(plan.groups[0])
