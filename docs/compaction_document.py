"""The compaction plan in the page about JSON documents: a real plan, and what its keys mean."""

from __future__ import annotations

from typing import Any

from docs.markdown import code
from relayout.compact.plan import Arrangement, CompactPlan, FileGroup, JobOrder, Mode, PlanWarning
from relayout.table.rewrites import GroupFiles, PlannedDelete, PlannedFile

COMPACTION = """## Compaction plan

`relayout compact TABLE --dry-run --json` prints it. `plan_id` covers the digests of the groups' files; a plan of more
than 20,000 files keeps them in a file beside it, and a group then has `members` (`file`, `offset`, `length`) instead of
`files`. Files are told in the JSON form of Iceberg's `ContentFileParser`.
"""

COMPACTION_MEANINGS = {
    "table_uuid": "the table's own id, which a table of the same name does not share",
    "base_sequence_number": "sequence number of that snapshot",
    "mode": "whether files keep their partition spec or move to another: "
    + ", ".join(code(mode.value) for mode in Mode),
    "target_spec_id": "the spec that migration moves files to, else the table's own",
    "target_file_bytes": "size that new files should have",
    "order": "in which order groups are worked on: " + ", ".join(code(order.value) for order in JobOrder),
    "arrangement": "how rows are laid out: " + ", ".join(code(kind.value) for kind in Arrangement),
    "arrange_by": "the columns that rows are ordered by",
    "where": "the filter as it was understood",
    "cost": "sums over all groups",
    "warnings": "what a reader of the plan should know",
    "forecast": "for migration, files and partitions before and after; else null",
    "cost.groups": "number of groups",
    "cost.bytes": "size of everything that is read or rewritten",
    "filter_stats": "how far the filter could be judged",
    "unevaluable_specs": "specs that cannot judge the filter",
    "eval_errors": "partitions whose values could not be evaluated",
    "fail_open_partitions": "partitions included because nobody could tell",
    "fail_open_files": "candidates in such partitions",
    "code": "which warning",
    "what": "the warning in words",
    "count": "how often it was met",
    "skipped": "live data files that stay as they are, by reason",
    "groups": "groups in the order in which they are worked on",
    "group_id": "number of the group in the order of partitions",
    "spec_id": "partition spec of its files, -1 for several",
    "partition": "partition values by field, null without partitions; for migration those of the target that are known",
    "label": "the partition for a reader",
    "output_spec_id": "partition spec of the new files",
    "groups[].reason": "why these files are rewritten",
    "input_files": "data files that are rewritten",
    "input_bytes": "their size",
    "input_rows": "their rows, deleted ones included",
    "delete_files": "delete files that apply to them",
    "expected_output_files": "how many files they become, about",
    "digest": "digest of the group's files",
    "groups[].files": "the files themselves",
    "data": "data files",
    "file": "a file as Iceberg's ContentFileParser writes it",
    "data_sequence_number": "its data sequence number, which decides which deletes reach it",
    "first_row_id": "where its row ids begin, null before version 3",
    "data[].deletes": "places of the delete files that apply to it in the group's list",
    "files.deletes": "delete files, each once",
    "verdict": "whether its rows match the filter: `must`, `might`, `cannot`, `unknown`; empty without a filter",
}


def example_compaction() -> CompactPlan:
    files = GroupFiles(
        (PlannedFile(_content("data", "00000-1"), 3, None, (0,), "must"),),
        (PlannedDelete(_content("position-deletes", "00000-2-deletes"), 4),),
    )
    group = FileGroup(
        group_id=0,
        spec_id=1,
        partition={"region": "eu"},
        label="region=eu",
        output_spec_id=1,
        reason="1 file with deletes",
        input_files=1,
        input_bytes=4_058,
        input_rows=96,
        delete_files=1,
        expected_output_files=1,
        digest=files.digest(),
        members=files,
    )
    return CompactPlan(
        table="econ.regional_income",
        table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        base_snapshot_id=8_262_347_194_573_410_001,
        base_sequence_number=4,
        mode=Mode.KEEP_SPEC,
        target_spec_id=1,
        target_file_bytes=536_870_912,
        order=JobOrder.NONE,
        arrangement=Arrangement.BINPACK,
        arrange_by=(),
        where="region = 'eu'",
        groups=(group,),
        warnings=(PlanWarning("unevaluable-spec", "files of spec 0 are included: its source column is gone"),),
        skipped=(("filter", 12), ("right size", 3)),
    )


def _content(content: str, name: str) -> dict[str, Any]:
    return {
        "spec-id": 1,
        "content": content,
        "file-path": f"/data/lake/econ/regional_income/data/region=eu/{name}.parquet",
        "file-format": "parquet",
        "partition": ["eu"],
        "file-size-in-bytes": 4_058,
        "record-count": 96,
    }
