"""Whatever others commit while a table is rewritten stays true."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from relayout.api import Lake
from relayout.commit.rewrite_receipts import GroupOutcome
from tests.spark.compact.scene import Scene, meanwhile

pytestmark = pytest.mark.spark

PHASES = ["run-begins", "files-written"]


@pytest.fixture(scope="module")
def lake(make_lake: Callable[..., Lake], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = make_lake(tmp_path_factory.mktemp("meanwhile") / "lake", {})
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    return made


def two_partitions(lake: Lake, name: str, version: int) -> Scene:
    scene = Scene(lake, name)
    scene.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (1, 'b'), (2, 'b')",
        "INSERT INTO {t} VALUES (3, 'a'), (4, 'a'), (3, 'b'), (4, 'b')",
    )
    return scene


def without(rows: list[tuple[int, str]], *gone: tuple[int, str]) -> list[tuple[int, str]]:
    return [row for row in rows if row not in gone]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("version", [2, 3])
def test_every_kind_of_change_wins(lake: Lake, version: int, phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = two_partitions(lake, f"changes_{version}_{phase.replace('-', '_')}", version)
    before = scene.rows()

    def change() -> None:
        scene.sql("DELETE FROM {t} WHERE p = 'a' AND id = 3", "INSERT INTO {t} VALUES (9, 'a')")
        scene.delete_by_key({"id": pa.array([2], pa.int64())}, partition=["b"])

    happened = meanwhile(monkeypatch, change, phase)
    receipt = lake.compact(scene.name)
    assert happened
    assert scene.rows() == sorted([*without(before, (3, "a"), (2, "b")), (9, "a")], key=repr)
    assert receipt.complete
    # Only the group that lost a row by position was done again: two commits, each group once.
    assert len(receipt.groups) == 2


def test_a_rival_that_was_faster_leaves_nothing_to_do(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = two_partitions(lake, "rival", 2)
    before = scene.rows()
    rival = "CALL lake.system.rewrite_data_files(table => 'db.{t}', options => map('min-input-files', '2'))"
    happened = meanwhile(monkeypatch, lambda: scene.sql(rival))
    receipt = lake.compact(scene.name)
    assert (bool(happened), scene.rows()) == (True, before)
    assert (receipt.groups, receipt.snapshot_ids) == ((), ())


def moving(lake: Lake, name: str, version: int) -> Scene:
    scene = Scene(lake, name)
    scene.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (1, 'b'), (2, 'b')",
        "ALTER TABLE {t} DROP PARTITION FIELD p",
        "ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id)",
        "INSERT INTO {t} VALUES (3, 'a'), (4, 'b')",
    )
    return scene


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_were_deleted_by_key_while_they_moved_to_another_spec_stay_deleted(
    lake: Lake, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = moving(lake, f"moved_{version}", version)
    before = scene.rows()
    old = {"id": pa.array([1], pa.int64())}
    happened = meanwhile(monkeypatch, lambda: scene.delete_by_key(old, spec_id=0, partition=["a"]))
    receipt = lake.compact(scene.name, mode="migrate")
    assert happened
    assert scene.rows() == without(before, (1, "a"))
    assert (receipt.complete, scene.deletes()) == (True, 0)
    assert {row.spec_id for row in scene.files()} == {scene.lake.table(scene.name).spec().spec_id}


@pytest.mark.parametrize("version", [2, 3])
def test_a_key_that_found_nothing_in_its_partition_does_not_reach_rows_that_move_there(
    lake: Lake, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = moving(lake, f"reverse_{version}", version)
    before = scene.rows()
    spec = lake.table(scene.name).spec().spec_id
    # Nothing of the new spec has id 1 or 2, so these deletes hit nothing, in either bucket.
    key = {"id": pa.array([1, 2], pa.int64())}

    def land() -> None:
        for bucket in (0, 1):
            scene.delete_by_key(
                key, spec_id=spec, partition=[None] * (len(lake.table(scene.name).spec().fields) - 1) + [bucket]
            )

    happened = meanwhile(monkeypatch, land)
    receipt = lake.compact(scene.name, mode="migrate")
    assert (bool(happened), receipt.complete) == (True, True)
    assert scene.rows() == before


def test_a_writer_that_never_rests_makes_a_conflict_and_no_wrong_row(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = two_partitions(lake, "restless", 2)
    ids = iter(range(100, 200))

    def passing(place: str) -> None:
        if place == "files-written":
            scene.sql("DELETE FROM {t} WHERE p = 'a' AND id = 1", f"INSERT INTO {{t}} VALUES ({next(ids)}, 'a')")
            scene.sql("INSERT INTO {t} VALUES (1, 'a')")

    monkeypatch.setattr("relayout.jobs.compact.passing", passing)
    receipt = lake.compact(scene.name)
    rows = scene.rows()
    assert [row for row in rows if row[0] < 100] == [
        (1, "a"),
        (1, "b"),
        (2, "a"),
        (2, "b"),
        (3, "a"),
        (3, "b"),
        (4, "a"),
        (4, "b"),
    ]
    outcomes = {group.outcome for group in receipt.groups}
    assert outcomes <= {GroupOutcome.DONE, GroupOutcome.CONFLICT}
