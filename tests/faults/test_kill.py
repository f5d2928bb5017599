"""`kill -9` between any two steps, run again: as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from relayout.commit.failpoints import PLACES
from relayout.jobs import tidying
from relayout.jobs.record import now_ms
from tests.faults.processes import SecondProcess, command_line
from tests.faults.scene import LONG, Row, Scene

YEARS = (2020, 2021, 2022)
NOTHING: Counter[Row] = Counter()

IN_A_REPLACEMENT = [
    "run-begins",
    *(f"{place}:{number}" for place in ("files-written", "before-commit", "after-commit") for number in (1, 2)),
    "before-ledger",
    "after-ledger",
    "run-ends",
]

REPEATED = [
    (place, next_place)
    for place in ("files-written:2", "before-commit:2", "after-commit:2")
    for next_place in ("run-begins", "before-ledger", "after-ledger", "before-commit", "after-commit", "run-ends")
]


@pytest.mark.parametrize("place", PLACES)
def test_a_first_load_killed_anywhere_is_finished_by_the_next_run(
    place: str, tmp_path: Path, second: SecondProcess
) -> None:
    scene = Scene(tmp_path)
    scene.write_years(YEARS)
    ended = second.killed_at(place, scene, "apply")
    assert ended.code == -signal.SIGKILL, ended.output
    scene.whole(NOTHING, scene.source_rows())
    scene.load()
    scene.finished()


@pytest.fixture(scope="module", params=["2", "3"] if LONG else ["2"])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A loaded table without partitions, so that compaction puts all its batches into one file."""
    scene = Scene(
        tmp_path_factory.mktemp("mixed"),
        {"defaults": {"retry_delay_ms": 1, "format_version": int(request.param)}},
        {"partitions": {"keys": []}},
    )
    scene.write_years(YEARS)
    scene.load()
    return scene


def mix(scene: Scene) -> None:
    scene.call("rewrite_data_files(table => 'db.readings', options => map('rewrite-all', 'true'))")
    assert len(list(scene.native().scan().plan_files())) == 1


@pytest.mark.parametrize("place", IN_A_REPLACEMENT)
def test_a_replacement_killed_anywhere_is_finished_by_the_next_run(
    place: str, mixed: Scene, second: SecondProcess
) -> None:
    mix(mixed)
    before = mixed.source_rows()
    assert mixed.rows() == before
    mixed.write_years(YEARS[1:], len(mixed.facts().ancestry))
    ended = second.killed_at(place, mixed, "apply")
    assert ended.code == -signal.SIGKILL, ended.output
    mixed.whole(before, mixed.source_rows())
    mixed.load()
    mixed.finished()


@pytest.mark.parametrize(("place", "next_place"), REPEATED if LONG else REPEATED[1:4:2])
def test_a_recovery_can_be_killed_too(place: str, next_place: str, tmp_path: Path, second: SecondProcess) -> None:
    scene = Scene(tmp_path)
    scene.write_years(YEARS)
    assert second.killed_at(place, scene, "apply").code == -signal.SIGKILL
    assert second.killed_at(next_place, scene, "apply").code == -signal.SIGKILL
    scene.whole(NOTHING, scene.source_rows())
    scene.load()
    scene.finished()


def test_kills_at_any_moment_lose_and_double_nothing(tmp_path: Path, second: SecondProcess) -> None:
    scene = Scene(tmp_path)
    scene.write_years(YEARS)
    usual = second.seconds_of(scene, "apply")
    states = [scene.source_rows()]
    killed = 0
    for number in range(100 if LONG else 4):
        chance = random.Random(number)
        scene.write_years(chance.sample(YEARS, chance.randint(1, 3)), number + 1)
        states.append(scene.source_rows())
        pid = second.start(scene, "apply")
        end = time.monotonic() + chance.random() * usual
        while time.monotonic() < end:
            scene.whole(*states)
        os.kill(pid, signal.SIGKILL)
        killed += second.ended().code == -signal.SIGKILL
        scene.whole(*states)
        if chance.random() < 0.5:
            scene.load()
            scene.finished()
            states = [scene.source_rows()]
    assert killed > 0
    scene.load()
    scene.finished()


@pytest.mark.parametrize("place", PLACES if LONG else ["after-commit"])
def test_a_run_that_dies_with_its_jvm_is_finished_by_the_next_run(place: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write_years(YEARS)
    dying = command_line(scene, "apply", RELAYOUT_KILL_AT=place)
    output, _ = dying.communicate(timeout=120)
    assert dying.returncode == -signal.SIGKILL, output
    scene.whole(NOTHING, scene.source_rows())
    scene.load()
    scene.finished()


def test_what_a_dead_run_left_goes_after_a_day(
    tmp_path: Path, second: SecondProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path)
    scene.write_years(YEARS)
    assert second.killed_at("before-commit:2", scene, "apply").code == -signal.SIGKILL
    scene.load()
    left = scene.left_files()
    assert left
    assert all(Path(path).exists() for path in left)
    scene.write_years(YEARS[:1], 1)
    scene.load()
    assert all(Path(path).exists() for path in left)

    tomorrow = now_ms() + 25 * 3600 * 1000
    monkeypatch.setattr(tidying, "now_ms", lambda: tomorrow)
    scene.write_years(YEARS[:1], 2)
    scene.load()
    assert not any(Path(path).exists() for path in left)
    scene.finished()
