"""The page about the JSON documents of `plan` and `apply`: every key of a real document, with what it means.

A key without a description here stops the page from being made, so none can be forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from docs.compaction_document import COMPACTION, COMPACTION_MEANINGS, example_compaction
from docs.markdown import code, table
from relayout.commit.receipts import AlternateReceipt, BatchReceipt, Migration, Outcome, Receipt, TableReceipt
from relayout.ingest.advice import Forecast
from relayout.ingest.plan import Action, Change, Drop, IngestPlan, PlannedBatch, Reason, TablePlan
from relayout.table.alternate_plans import AlternatePlan, Step
from relayout.table.batches import BatchKey

INTRODUCTION = """# Plan and receipt as JSON

With `--json` a verb prints one JSON document on stdout and its log on stderr. `"schema": 1` stays until a key changes
its meaning or goes away; new keys may come at any time. Keys and values of batches have the types of their columns;
dates and times are texts.
"""

PLAN = """## Plan

`relayout plan --json` prints it, `relayout plan -o plan.json` writes it, `relayout apply --plan plan.json` takes it.
`plan_id` is a digest of everything else in it, so that an altered plan is refused. Sources are named by fingerprint:
before a stored plan is applied, the sources and the tables are looked at again, and what comes out must be that plan.
"""

RECEIPT = """## Receipt

`relayout apply --json` and `relayout retry --json` print it.
"""

MEANINGS = {
    "schema": "version of this form",
    "kind": "which document this is",
    "plan_id": "digest of the plan; stands in the summary of every snapshot that it leads to",
    "has_work": "whether applying it would do anything",
    "cost": "sums over what is pending",
    "cost.batches": "number of batches",
    "batches": "batches, in the order in which they are planned",
    "files": "number of files",
    "bytes": "size of these files",
    "tables": "one entry per table",
    "drops": "tables that relayout made and that are no longer declared; they go with `--prune` only",
    "table": "table name",
    "rows": "number of rows",
    "layout": "declared layout",
    "layout_before": "layout of the table, when the declared one is another",
    "change": "what happens to the table itself: " + ", ".join(code(change.value) for change in Change),
    "tables[].schema": "the table's columns after the run",
    "name": "column name",
    "type": "Iceberg type",
    "schema_changes": "columns that are added or widened",
    "base_snapshot_id": "current snapshot that the plan was made on",
    "engine": "`kernel`, or `spark` where expressions must be computed",
    "engine_reason": "why this engine",
    "done": "batches that need nothing, or that were done",
    "kept_without_source": "batches whose source files are gone and whose rows stay",
    "gaps": "whole numbers missing between the first and the last batch",
    "bad_files": "source files that cannot be read, and why",
    "path": "path of a source file",
    "tables[].bad_files[].reason": "why it cannot be read",
    "notes": "decisions about types that you may want to know of",
    "advice": "warnings about the layout, with their remedy",
    "forecast": "the whole table once it is loaded, from one sampled source file; null when nothing is pending",
    "size_bytes": "size of these files",
    "forecast.rows": "number of rows, null when nothing could be sampled",
    "depth": "partition levels",
    "values_per_level": "distinct values seen per partition column",
    "average_bytes": "average size of a data file",
    "problem": "why this table cannot be planned; empty when it can",
    "key": "the batch: values by batch column",
    "action": "what happens to its rows: " + ", ".join(code(action.value) for action in Action),
    "batches[].reason": "why it is in the plan: " + ", ".join(code(reason.value) for reason in Reason),
    "rows_estimate": "rows expected, from the sample; null when not known",
    "fingerprint": "digest of the batch's source files as listed",
    "schema_hash": "digest of everything declared that decides how its rows are read and laid out",
    "changes": "which source files were added, changed or removed",
    "warnings": "what is unusual about the batch",
    "parts": "pieces that are read one by one, so that memory stays bounded",
    "blocked": "why the batch cannot run; the others can",
    "needs": "the flag without which it is left alone",
    "run_id": "the run; stands in the snapshots' summaries",
    "complete": "whether nothing failed",
    "failed": "batches that failed after all tries",
    "skipped": "batches that another run loaded, or that need a flag",
    "seconds": "wall time",
    "snapshot_ids": "snapshots that this run made",
    "dropped": "tables that were dropped",
    "error": "why the table could not be worked on; empty when it could",
    "migration": "before and after, when the layout changed; else null",
    "files_before": "data files before",
    "files_after": "data files after",
    "rows_before": "rows before",
    "rows_after": "rows after",
    "keys_before": "distinct batches before",
    "keys_after": "distinct batches after",
    "layout_after": "layout after",
    "verified": "whether rows and keys are equal",
    "outcome": "how it ended: " + ", ".join(code(outcome.value) for outcome in Outcome),
    "source_files": "source files read",
    "source_bytes": "size of the source files read",
    "snapshot_id": "the snapshot that made it visible",
    "note": "the error of a failed batch, the reason of a skipped one",
    "alternates": "other layouts of the same rows",
    "alternate": "what a dropped alternate was; empty for a table",
    "alternates[].name": "declared name of the alternate, a description only",
    "alternates[].table": "its table; empty until it is made",
    "alternates[].layout": "its layout",
    "step": "what happens to it: " + ", ".join(code(step.value) for step in Step),
    "alternates[].reason": "why",
    "stale": "batches of which it does not hold the table's rows; empty when that is all or none",
    "alternates[].size_bytes": "what it takes, or is expected to take",
    "amplification": "its size by the size of the table",
    "helps": "predicates that it speeds up",
    "replacement": "YAML to write in place of one that is refused",
    "alternates[].action": "how its rows were brought up",
    "alternates[].note": "the error of a failed alternate; the next `apply` tries again",
}


_OPEN = (".key", ".values_per_level", ".partition", ".file")
"""Mappings whose keys are names of a user's own, or in somebody else's form."""


def documents_page() -> str:
    parts = [INTRODUCTION]
    documents = (
        (PLAN, example_plan().to_json()),
        (RECEIPT, example_receipt().to_json()),
        (COMPACTION, example_compaction().to_json()),
    )
    for head, document in documents:
        told = json.loads(json.dumps(document))
        meanings = {**MEANINGS, **COMPACTION_MEANINGS} if head is COMPACTION else MEANINGS
        rows = [(code(path), kind, _meaning(path, meanings)) for path, kind in keys(told, "")]
        parts.append(f"{head}\n{table(('key', 'value', 'meaning'), rows)}")
        parts.append(f"```json\n{json.dumps(document, indent=2)}\n```\n")
    return "\n".join(parts)


def keys(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every fixed key of a document with the kind of its value; keys that are a user's own names are not followed."""
    if isinstance(value, Mapping) and not (path.endswith(_OPEN) or path == "skipped"):
        for key, inner in value.items():
            here = f"{path}.{key}" if path else key
            yield here, _kind(inner)
            yield from keys(inner, here)
    elif isinstance(value, list) and value:
        yield from keys(value[0], f"{path}[]")


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int():
            return "whole number"
        case float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case None:
            return "number or null"
        case _:
            return "mapping"


def _meaning(path: str, meanings: Mapping[str, str]) -> str:
    """The description of the longest end of the path that has one."""
    parts = path.split(".")
    for start in range(len(parts)):
        told = meanings.get(".".join(parts[start:]))
        if told:
            return told
    raise KeyError(f"docs/documents_page.py does not say what {path} means")


def example_plan() -> IngestPlan:
    batch = PlannedBatch(
        key=BatchKey((("year", 2020),)),
        action=Action.LOAD,
        reason=Reason.SOURCE_CHANGED,
        files=2,
        size_bytes=13_772,
        rows_estimate=94,
        fingerprint="5d1c4c2f0c6e1b0b8f8a6f7e2b9d3a41",
        schema_hash="0f3c9f0b6a51d2e7-6d1d2f0a",
        changes=("changed /data/downloads/regional_income/CAINC1_2020_county.json",),
    )
    plan = TablePlan(
        table="regional_income",
        layout="year, sorted by geo_fips",
        layout_before="",
        change=Change.NONE,
        schema=(("geo_fips", "string"), ("value", "long"), ("year", "int")),
        schema_changes=(),
        base_snapshot_id=8_262_347_194_573_410_000,
        engine="kernel",
        engine_reason="DuckDB inside Spark tasks reads and lays out whole files",
        batches=(batch,),
        done=4,
        bad_files=(("/data/downloads/regional_income/CAINC1_2021_county.json.gz", "torn gzip"),),
        forecast=Forecast(5, 20_290, 473, 1, (("year", 5),)),
        alternates=(_example_alternate(),),
    )
    return IngestPlan((plan,), (Drop("old_table", 16),))


def _example_alternate() -> AlternatePlan:
    return AlternatePlan(
        "by_fips",
        "_mv_0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p",
        "bucket[16](geo_fips), sorted by geo_fips",
        Step.REFRESH,
        "is behind the table",
        ("{year=2019}",),
        21_004,
        1.04,
        ("geo_fips = …", "geo_fips IN (…)"),
    )


def example_receipt() -> Receipt:
    batch = BatchReceipt(
        key=BatchKey((("year", 2020),)),
        action=Action.LOAD.value,
        outcome=Outcome.DONE,
        rows=96,
        files=1,
        size_bytes=4_058,
        source_files=2,
        source_bytes=13_772,
        seconds=0.8,
        snapshot_id=8_262_347_194_573_410_001,
    )
    migration = Migration("year, line_code", "year", 30, 5, 480, 480, 5, 5)
    alternate = AlternateReceipt(
        "by_fips",
        "_mv_0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p",
        "bucket[16](geo_fips), sorted by geo_fips",
        "built with the base",
        Outcome.DONE,
        96,
        16,
        4_391,
        0.4,
    )
    receipt = TableReceipt("regional_income", Change.RELAYOUT.value, (batch,), 1.2, migration, alternates=(alternate,))
    return Receipt(example_plan().plan_id, "3f0d6c1e", (receipt,), 1.4)
