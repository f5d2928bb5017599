"""Ten thousand source files in one table are ordinary, and very many listed paths stay usable."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

import relayout
from relayout.api import Lake
from relayout.ingest.plan import Cost
from relayout.jobs import sources
from relayout.read.listing import Listing
from relayout.table.sources import SourceFile

LakeOf = Callable[..., Lake]

LONG = os.environ.get("RELAYOUT_FAULTS") == "long"
LISTED_FOLDERS = 7_000 if LONG else 700
FILES_PER_FOLDER = 100


@pytest.mark.spark
def test_ten_thousand_source_files_are_loaded_and_one_that_changes_is_found(lake_of: LakeOf, tmp_path: Path) -> None:
    for year in range(2010, 2020):
        folder = tmp_path / "in" / f"year={year}"
        folder.mkdir(parents=True)
        for number in range(1000):
            (folder / f"{number}.json").write_text(f'{{"id": {number}, "name": "n{number % 7}"}}\n')
    lake = lake_of({"t": {"source": str(tmp_path / "in/year=*/*.json"), "partitions": {"keys": ["year"]}}})
    plan = lake.plan()
    assert (plan.cost.batches, plan.cost.files) == (10, 10_000)
    assert plan.cost.rows == pytest.approx(10_000, rel=0.05)
    receipt = lake.apply()
    assert receipt.complete
    assert [(batch.rows, batch.files) for batch in receipt.tables[0].batches] == [(1000, 1)] * 10
    found = lake.table("t").scan().to_arrow().select(["id", "year"]).to_pylist()
    assert {(row["id"], row["year"]) for row in found} == {(i, y) for i in range(1000) for y in range(2010, 2020)}
    assert not lake.plan().has_work
    (tmp_path / "in/year=2015/77.json").write_text('{"id": 1000, "name": "new"}\n')
    assert [str(batch.key) for batch in lake.plan().tables[0].batches] == ["{year=2015}"]
    assert lake.apply().complete
    changed = lake.table("t").scan("year == 2015").to_arrow().column("id").to_pylist()
    assert sorted(changed) == [*range(77), *range(78, 1001)]


def test_a_plan_over_very_many_paths_keeps_little_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of 700,000 paths, all of them in the long form: links to few files in many folders."""
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path / "cache"))
    for number in range(LISTED_FOLDERS):
        folder = tmp_path / "in" / f"year={1950 + number % 70}" / f"geo=0{number:04d}"
        folder.mkdir(parents=True)
        first = folder / "00.json"
        first.write_text('{"id": 1, "name": "x"}\n')
        for copy in range(1, FILES_PER_FOLDER):
            os.link(first, folder / f"{copy:02d}.json")
    table = {
        "source": str(tmp_path / "in/year=*/geo=*/*.json"),
        "schema": {"id": "long", "name": "string", "geo": "string"},
        "partitions": {"keys": ["year"]},
    }
    lake = relayout.open({"warehouse": str(tmp_path / "lake"), "tables": {"t": table}})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plan = lake.plan()
    paths = LISTED_FOLDERS * FILES_PER_FOLDER
    assert plan.cost == Cost(70, paths, 23 * paths, paths)
    assert dict(plan.tables[0].schema) == {"id": "long", "name": "string", "year": "long", "geo": "string"}
    # About half a kilobyte for each path, and what Python and DuckDB take by themselves.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000 + paths
    # A plan names batches, not paths: its document does not grow with them.
    assert len(str(plan.to_json())) < 100_000


def test_seven_hundred_thousand_paths_in_one_batch_are_split_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.json").write_text('{"id": 1}\n')
    files = tuple(SourceFile(f"{tmp_path}/{number:06d}.json", 10 + number % 5, 1) for number in range(700_000))
    monkeypatch.setattr(sources, "list_source", lambda *_: Listing(files))
    monkeypatch.setattr("relayout.jobs.plan.sample_of", lambda *_: None)
    monkeypatch.setattr("relayout.jobs.plan.contents_of", lambda *_: {})
    lake = relayout.open(
        {
            "warehouse": str(tmp_path / "lake"),
            "tables": {"t": {"source": f"{tmp_path}/*.json", "schema": {"id": "long"}}},
        }
    )
    (batch,) = lake.plan().tables[0].batches
    assert (batch.files, batch.parts) == (700_000, 700)
    assert batch.warnings == (
        "Batch {all} has 700,000 files, threshold is 1,000. Consider finer batch_partition_columns (add id).",
    )
