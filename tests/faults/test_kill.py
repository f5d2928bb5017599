"""`kill -9` between any two steps, run again: as if nothing had happened."""

from __future__ import annotations

import signal

import pytest

from relayout.commit.failpoints import PLACES
from tests.faults.conftest import Scene

YEARS = (2020, 2021, 2022)


def fresh(folder):
    scene = Scene(folder)
    for year in YEARS:
        for part in ("a", "b"):
            scene.write(year, part, range(10), value=year)
    return scene


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_load_is_finished_by_the_next_run(tmp_path, second, place):
    scene = fresh(tmp_path)
    ended = second.killed_at(place, scene, "apply")
    assert ended.code == -signal.SIGKILL, ended.output
    assert scene.lake.apply().complete
    assert scene.rows() == scene.source_rows()
    assert set(scene.stamped().values()) == {1}, scene.stamped()
    assert scene.state().unrecorded == ()
    assert scene.pending() == {}
