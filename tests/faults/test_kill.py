"""`kill -9` between any two steps, run again: as if nothing had happened."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from relayout.commit.failpoints import PLACES
from tests.faults.conftest import LONG, Scene, SecondProcess

YEARS = (2020, 2021, 2022)


def fresh(folder):
    scene = Scene(folder)
    for year in YEARS:
        for part in ("a", "b"):
            scene.write(year, part, range(10), value=year)
    return scene


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_load_is_finished_by_the_next_run(tmp_path, second, place):
    import time

    t = time.time()
    scene = fresh(tmp_path)
    ended = second.killed_at(place, scene, "apply")
    print("dying", time.time() - t)
    assert ended.code == -signal.SIGKILL, ended.output
    orphans = scene.unknown_files() if scene.native() else set()
    print("orphans", len(orphans), "scratch", scene.scratch())
    seen = scene.rows()
    print("rows at death", Counter(y for y, _, _, _ in seen.elements()))
    r = scene.lake.apply()
    print("second", time.time() - t)
    assert r.complete
    assert scene.rows() == scene.source_rows()
    assert set(scene.stamped().values()) == {1}, scene.stamped()
    assert scene.state().unrecorded == ()
    assert scene.pending() == {}
    print("unknown files", len(scene.unknown_files()), "left", len(scene.left_files()), scene.scratch())
