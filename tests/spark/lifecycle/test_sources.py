"""What a source file that comes, changes or goes means for the table."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import relayout
from relayout.api import Lake
from relayout.commit.receipts import BatchReceipt, Outcome
from relayout.errors import SourceError
from relayout.ingest.plan import Change, IngestPlan

pytestmark = pytest.mark.spark

LakeOf = Callable[..., Lake]
Rows = Callable[[Lake, str], list[tuple[Any, ...]]]
Pending = Callable[..., dict[str, str]]


def income(source: str, **told: Any) -> dict[str, Any]:
    return {"source": source, "partitions": {"keys": [{"name": "year", "type": "INTEGER"}]}, **told}


def row(geo: str, value: int) -> dict[str, Any]:
    return {"geo": geo, "value": value}


def test_a_first_run_loads_every_batch_and_a_second_one_finds_nothing_to_do(
    lake_of: LakeOf, downloads: Any, rows_in: Rows
) -> None:
    sizes = {}
    for year in (2019, 2020, 2022):
        written = [downloads.write(f"{kind}_{year}.json", row(kind, year)) for kind in ("state", "county")]
        sizes[year] = sum(Path(path).stat().st_size for path in written)
    lake = lake_of({"income": income(downloads.pattern("*_{year}.json"))})

    plan = lake.plan()
    (table,) = plan.tables
    assert (table.change, table.layout, table.layout_before, table.base_snapshot_id) == (
        Change.CREATE,
        "year",
        "",
        None,
    )
    assert table.schema == (("geo", "string"), ("value", "long"), ("year", "int"))
    assert [(str(batch.key), str(batch.reason), batch.files) for batch in table.batches] == [
        ("{year=2019}", "new", 2),
        ("{year=2020}", "new", 2),
        ("{year=2022}", "new", 2),
    ]
    assert [batch.size_bytes for batch in table.batches] == list(sizes.values())
    assert [batch.rows_estimate for batch in table.batches] == [2, 2, 2]
    assert table.gaps == ("{year=2021}",)
    assert (plan.cost.batches, plan.cost.files, plan.cost.size_bytes, plan.cost.rows) == (3, 6, sum(sizes.values()), 6)
    again = IngestPlan.from_json(json.loads(json.dumps(plan.to_json())))
    assert (again, again.plan_id) == (plan, plan.plan_id)
    assert lake.plan() == plan
    assert not (Path(lake.config.warehouse)).exists()

    receipt = lake.apply()
    assert (receipt.plan_id, receipt.complete, receipt.count(Outcome.DONE)) == (plan.plan_id, True, 3)
    (done,) = receipt.tables
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in lake.table("income").snapshots()}
    assert set(done.snapshot_ids) == snapshots.keys()
    assert {snapshot.summary["relayout.plan-id"] for snapshot in snapshots.values() if snapshot.summary} == {
        plan.plan_id
    }
    for batch in done.batches:
        year = dict(batch.key.items)["year"]
        assert _plain(batch) == {"action": "load", "rows": 2, "files": 1, "source_files": 2, "note": ""}
        assert batch.source_bytes == sizes[year]
        assert batch.size_bytes == _bytes_of(lake, "income", year)
    assert rows_in(lake, "income") == [(k, y, y) for k in ("county", "state") for y in (2019, 2020, 2022)]

    nothing = lake.plan()
    assert (nothing.has_work, nothing.tables[0].done, nothing.tables[0].batches) == (False, 3, ())
    assert nothing.cost.batches == 0
    again_done = lake.apply()
    assert (again_done.tables[0].batches, again_done.complete) == ((), True)
    assert len(list(lake.table("income").snapshots())) == 3


def _plain(batch: BatchReceipt) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in ("action", "rows", "files", "source_files", "note")}


def _bytes_of(lake: Lake, table: str, year: object) -> int:
    tasks = lake.table(table).scan(row_filter=f"year == {year}").plan_files()
    return sum(task.file.file_size_in_bytes for task in tasks)


def test_changed_touched_and_added_files_rerun_exactly_their_batches(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    for year in (2019, 2020, 2021):
        downloads.write(f"a_{year}.json", row("a", year))
    lake = lake_of({"income": income(downloads.pattern("*_{year}.json"))})
    lake.apply()
    loaded = rows_in(lake, "income")

    downloads.touch("a_2019.json")
    assert not lake.plan().has_work

    changed = downloads.write("a_2020.json", row("a", 7))
    added = downloads.write("b_2021.json", row("b", 8))
    plan = lake.plan()
    assert pending(plan) == {"2020": "load, source changed", "2021": "load, source changed"}
    assert [batch.changes for batch in plan.tables[0].batches] == [(f"changed {changed}",), (f"added {added}",)]
    assert plan.tables[0].done == 1
    receipt = lake.apply()
    assert {str(batch.key): (batch.rows, batch.source_files) for batch in receipt.tables[0].batches} == {
        "{year=2020}": (1, 1),
        "{year=2021}": (2, 2),
    }
    assert rows_in(lake, "income") == sorted(
        [*(row for row in loaded if row[2] != 2020), ("a", 7, 2020), ("b", 8, 2021)], key=repr
    )
    assert not lake.plan().has_work

    downloads.touch("a_2020.json")
    downloads.write("c_2022.json", row("c", 9))
    assert pending(lake.plan()) == {"2022": "load, new"}


def test_rows_of_removed_files_stay_until_pruning_is_asked_for(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    for year in (2019, 2020, 2021):
        for kind in ("a", "b"):
            downloads.write(f"{kind}_{year}.json", row(kind, year))
    source = downloads.pattern("*_{year}.json")
    lake = lake_of({"income": income(source)})
    lake.apply()
    everything = rows_in(lake, "income")

    half = downloads.remove("b_2019.json")
    downloads.remove("a_2020.json"), downloads.remove("b_2020.json")
    plan = lake.plan()
    assert not plan.has_work
    assert plan.tables[0].kept_without_source == (
        "{year=2019}: 1 of its source files are gone, their rows stay",
        "{year=2020}: all its source files are gone, its rows stay",
    )
    assert rows_in(lake, "income") == everything

    # A batch that must be loaded anew would lose the rows of the missing file, so it waits for a word.
    downloads.write("a_2019.json", row("a", 1))
    assert pending(lake.plan()) == {"2019": "load, source changed, needs --prune"}
    receipt = lake.apply()
    assert [(batch.outcome, batch.note) for batch in receipt.tables[0].batches] == [
        (Outcome.SKIPPED, f"removed {half}; needs --prune")
    ]
    assert (receipt.complete, rows_in(lake, "income")) == (True, everything)

    deleting = lake_of({"income": income(source, on_removed="delete")})
    plan = deleting.plan()
    assert pending(plan) == {
        "2019": "load, source changed, needs --prune",
        "2020": "remove, source removed, needs --prune",
    }
    assert plan.tables[0].kept_without_source == ("{year=2019}: 1 of its source files are gone, their rows stay",)
    assert [batch.outcome for batch in deleting.apply().tables[0].batches] == [Outcome.SKIPPED, Outcome.SKIPPED]
    assert rows_in(lake, "income") == everything

    done = deleting.apply(prune=True)
    assert {str(batch.key): (batch.action, batch.outcome, batch.rows) for batch in done.tables[0].batches} == {
        "{year=2019}": ("load", Outcome.DONE, 1),
        "{year=2020}": ("remove", Outcome.DONE, 0),
    }
    assert rows_in(lake, "income") == [("a", 1, 2019), ("a", 2021, 2021), ("b", 2021, 2021)]
    assert not deleting.plan().has_work
    downloads.write("a_2020.json", row("a", 2020))
    assert pending(deleting.plan()) == {"2020": "load, new"}


def test_a_source_that_lists_nothing_changes_nothing(lake_of: LakeOf, downloads: Any, rows_in: Rows) -> None:
    path = downloads.write("a_2020.json", row("a", 1))
    tables = {"income": income(downloads.pattern("*_{year}.json"), on_removed="delete")}
    lake = lake_of(tables)
    lake.apply()
    Path(path).unlink()
    with pytest.raises(SourceError, match="lists no file at all"):
        lake.apply(prune=True)
    assert rows_in(lake, "income") == [("a", 1, 2020)]


def test_the_command_line_plans_applies_and_finds_nothing_left(downloads: Any, tmp_path: Path) -> None:
    downloads.write("a_2020.json", row("a", 1))
    file = tmp_path / "relayout.yaml"
    file.write_text(
        json.dumps(
            {
                "spark": {"master": "local[2]", "driver_memory": "1g"},
                "tables": {"income": income("in/*_{year}.json")},
            }
        ),
        "utf-8",
    )

    def run(*words: str) -> tuple[int, Any]:
        command = [sys.executable, "-m", "relayout", "-c", str(file), *words, "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)

    stored = tmp_path / "plan.json"
    code, plan = run("plan", "-o", str(stored))
    assert (code, plan["tables"][0]["batches"][0]["key"]) == (1, {"year": 2020})
    assert json.loads(stored.read_text("utf-8")) == plan
    code, receipt = run("apply", "--plan", str(stored))
    assert (code, receipt["plan_id"], receipt["done"], receipt["rows"]) == (0, plan["plan_id"], 1, 1)
    assert run("plan")[0] == 0
    downloads.remove("a_2020.json")
    code, error = run("plan")
    assert (code, error["error"], error["retry"]) == (2, "SourceError", "never")
    assert relayout.open(file).table("income").scan().to_arrow().num_rows == 1
