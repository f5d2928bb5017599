"""What was done is known from the tables alone: caches, expired snapshots, the ledger may go, a rollback re-opens."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from relayout.read.live_rows import rows_of_batches
from relayout.table.batches import BatchKey
from tests.faults.scene import Scene

KEEP_LAST = "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1"


@pytest.fixture
def loaded(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    for year in (2020, 2021, 2022):
        scene.write(year, "a", range(10))
    scene.load()
    return scene


def expire(scene: Scene) -> None:
    scene.call(f"expire_snapshots(table => 'db.readings', {KEEP_LAST})")
    assert len(scene.native().metadata.snapshots) == 1


def files_of(scene: Scene, rows: str) -> set[str]:
    return {task.file.file_path for task in scene.native().scan(row_filter=rows).plan_files()}


def test_expired_snapshots_are_still_known_to_be_done(loaded: Scene) -> None:
    expire(loaded)
    assert loaded.pending() == {}
    untouched = files_of(loaded, "year != 2021")
    loaded.write(2021, "a", range(5), value=1)
    assert loaded.pending() == {"{year=2021}": "source changed"}
    receipt = loaded.load()
    assert [str(batch.key) for batch in receipt.tables[0].batches] == ["{year=2021}"]
    assert loaded.rows() == loaded.source_rows()
    assert files_of(loaded, "year != 2021") == untouched
    expire(loaded)
    assert loaded.pending() == {}


def test_foreign_snapshots_before_and_after_expiry_break_no_chain(loaded: Scene) -> None:
    loaded.lake.sql("INSERT INTO readings (year, part, id, value) VALUES (1900, 'x', 1, 1)")
    loaded.lake.sql("DELETE FROM readings WHERE year = 1900")
    expire(loaded)
    assert loaded.pending() == {}
    loaded.write(2021, "a", range(5), value=1)
    loaded.load()
    assert loaded.rows() == loaded.source_rows()
    assert loaded.pending() == {}
    expire(loaded)
    assert loaded.pending() == {}


def test_a_rollback_reopens_exactly_what_it_undid(loaded: Scene) -> None:
    first = loaded.facts().current_snapshot_id
    loaded.write(2021, "a", range(5), value=1)
    loaded.write(2023, "a", range(5), value=1)
    loaded.load()
    loaded.call(f"rollback_to_snapshot(table => 'db.readings', snapshot_id => {first})")
    assert loaded.pending() == {"{year=2021}": "source changed", "{year=2023}": "new"}
    loaded.load()
    assert loaded.rows() == loaded.source_rows()
    assert loaded.pending() == {}
    expire(loaded)
    assert loaded.pending() == {}


def test_an_undone_commit_does_not_come_back_with_expiry(loaded: Scene) -> None:
    first = loaded.facts().current_snapshot_id
    loaded.write(2021, "a", range(5), value=1)
    loaded.load()
    loaded.call(f"rollback_to_snapshot(table => 'db.readings', snapshot_id => {first})")
    expire(loaded)
    assert loaded.pending() == {"{year=2021}": "source changed"}
    loaded.load()
    assert loaded.rows() == loaded.source_rows()


def test_without_caches_nothing_is_forgotten(loaded: Scene) -> None:
    shutil.rmtree(os.environ["RELAYOUT_CACHE"])
    assert loaded.pending() == {}
    loaded.write(2021, "a", range(5), value=1)
    assert loaded.pending() == {"{year=2021}": "source changed"}


def test_without_the_ledger_live_stamps_still_count(loaded: Scene) -> None:
    loaded.lake.sql("DROP TABLE relayout_ledger")
    assert loaded.pending() == {}
    assert len(loaded.state().unrecorded) == 3
    loaded.load()
    assert loaded.state().unrecorded == ()
    assert len(loaded.records()) == 3
    loaded.write(2021, "a", range(5), value=1)
    assert loaded.pending() == {"{year=2021}": "source changed"}


def test_a_compaction_that_was_forgotten_is_not_taken_for_an_edit(tmp_path: Path) -> None:
    scene = Scene(tmp_path, table={"partitions": {"keys": []}})
    for year in (2020, 2021, 2022):
        scene.write(year, "a", range(5))
    scene.load()
    scene.call("rewrite_data_files(table => 'db.readings', options => map('rewrite-all', 'true'))")
    expire(scene)
    scene.write(2021, "a", range(5), value=1)
    scene.load()
    expire(scene)
    scene.write(2020, "a", range(5), value=2)
    assert scene.pending() == {"{year=2020}": "source changed"}
    scene.load()
    assert scene.rows() == scene.source_rows()

    # Rows of somebody else stay known as such, even after they were compacted and both snapshots are gone.
    scene.lake.sql("INSERT INTO readings (year, part, id, value) VALUES (2022, 'x', 1, 1)")
    scene.call("rewrite_data_files(table => 'db.readings', options => map('rewrite-all', 'true'))")
    scene.write(2021, "a", range(5), value=3)
    scene.load()
    expire(scene)
    scene.write(2022, "a", range(5), value=4)
    assert scene.pending() == {"{year=2022}": "--overwrite-edits"}


def test_rows_that_went_with_a_forgotten_snapshot_are_not_brought_back_unseen(loaded: Scene) -> None:
    loaded.lake.sql("DELETE FROM readings WHERE year = 2020")
    # The snapshot that stays touches no batch in question.
    loaded.write(2022, "a", range(5), value=1)
    loaded.load()
    expire(loaded)
    for year in (2020, 2021):
        loaded.write(year, "a", range(5), value=1)
    assert loaded.pending() == {"{year=2020}": "--overwrite-edits", "{year=2021}": "source changed"}
    receipt = loaded.lake.apply()
    notes = {str(batch.key): batch.note for batch in receipt.tables[0].batches}
    assert notes["{year=2020}"] == (
        "edited: rows of this batch were changed by a snapshot that has expired, which was not an ingestion; "
        "needs --overwrite-edits"
    )
    assert {row[0] for row in loaded.rows()} == {2021, 2022}
    assert loaded.lake.apply(overwrite_edits=True).complete
    assert loaded.rows() == loaded.source_rows()
    expire(loaded)
    assert loaded.pending() == {}


@pytest.mark.parametrize("format_version", [2, 3])
def test_rows_of_a_batch_are_counted_where_files_mix_batches(format_version: int, tmp_path: Path) -> None:
    told = {"defaults": {"retry_delay_ms": 1, "format_version": format_version}}
    scene = Scene(tmp_path, told, {"partitions": {"keys": []}})
    for year in (2020, 2021, 2022):
        scene.write(year, "a", range(5))
    scene.load()
    scene.call("rewrite_data_files(table => 'db.readings', options => map('rewrite-all', 'true'))")
    scene.write(2021, "a", range(7), value=1)
    scene.load()
    scene.lake.sql("ALTER TABLE readings SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    scene.lake.sql("DELETE FROM readings WHERE year = 2020 AND id > 2")
    scene.lake.sql("DELETE FROM readings WHERE year = 2021 AND id = 1")
    keys = [BatchKey((("year", year),)) for year in (2020, 2021, 2022, 2023)]
    assert rows_of_batches(scene.native(), keys) == dict(zip(keys, (3, 6, 5, 0), strict=True))
