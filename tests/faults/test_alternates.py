"""`kill -9` around the commits of alternates: the base never notices, and the next run brings them up."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from relayout.alternates.freshness import head_account
from relayout.alternates.registry import Found
from relayout.commit.failpoints import PLACES_OF_ALTERNATES
from relayout.jobs.alternates.shelf import alternates_in
from relayout.read.catalog import CatalogReader
from relayout.table.alternates import Account
from tests.faults.processes import SecondProcess
from tests.faults.scene import LONG, Row, Scene

YEARS = (2020, 2021, 2022)
BY_ID = {"name": "by_id", "partition": {"keys": [{"name": "id", "transform": "bucket[3]"}]}, "sort": ["id"]}
BY_VALUE = {"name": "by_value", "sort": ["value"]}


def alternates(scene: Scene) -> list[Found]:
    config = scene.lake.config
    return list(alternates_in(CatalogReader(config), config))


def rows_of(scene: Scene, table: str) -> Counter[Row]:
    found = scene.native(table).scan(selected_fields=("year", "part", "id", "value")).to_arrow().to_pylist()
    return Counter((row["year"], row["part"], row["id"], row["value"]) for row in found)


def in_step(scene: Scene) -> None:
    """Both alternates hold the rows of the base and account for its current snapshot."""
    assert [one.name for one in sorted(alternates(scene), key=lambda one: one.name)] == ["by_id", "by_value"]
    for one in alternates(scene):
        assert rows_of(scene, one.table) == scene.source_rows()
        assert head_account(one.facts.ancestry) == Account(scene.facts().ancestry[0].snapshot_id)


PLACES = [place for place in PLACES_OF_ALTERNATES if place != "alternate-files-written"]


@pytest.mark.parametrize("place", PLACES if LONG else ["alternate-created", "before-alternate-commit"])
def test_a_first_load_killed_at_an_alternate_is_finished_by_the_next_run(
    place: str, tmp_path: Path, second: SecondProcess
) -> None:
    scene = Scene(tmp_path, table={"alternate_partitions": [BY_ID, BY_VALUE]})
    scene.write_years(YEARS)
    ended = second.killed_at(place, scene, "apply")
    assert ended.code == -signal.SIGKILL, ended.output
    scene.whole(Counter(), scene.source_rows())
    assert scene.lake.apply().complete
    scene.finished()
    in_step(scene)


PLACES_OF_CATCHING_UP = ["alternate-files-written", "after-alternate-commit", "after-alternate-commit:2"]


@pytest.mark.parametrize("place", PLACES_OF_CATCHING_UP if LONG else PLACES_OF_CATCHING_UP[:1])
def test_catching_up_killed_anywhere_is_finished_by_the_next_run(
    place: str, tmp_path: Path, second: SecondProcess
) -> None:
    scene = Scene(tmp_path, table={"alternate_partitions": [BY_ID, BY_VALUE]})
    scene.write_years(YEARS)
    assert scene.lake.apply().complete
    scene.lake.spark.sql("UPDATE lake.db.readings SET value = value WHERE year = 2021")
    assert second.killed_at(place, scene, "apply").code == -signal.SIGKILL
    assert scene.lake.apply().complete
    in_step(scene)
