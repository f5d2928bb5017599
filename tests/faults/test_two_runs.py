"""Two `apply` at once: both end well, and no batch is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from relayout.commit import batches as committing
from relayout.commit.receipts import Outcome
from relayout.jobs import apply_table as applying
from tests.faults.processes import SecondProcess
from tests.faults.scene import LONG, Scene

YEARS = (2020, 2021, 2022)

PLACES = ("files-written", "before-commit", "after-commit")


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], None]], None]:
    """`meanwhile(place, act)`: when the run of this process passes the place for the first time, `act` runs."""

    def armed(place: str, act: Callable[[], None]) -> None:
        waiting = [act]

        def passing(passed: str) -> None:
            if passed == place and waiting:
                waiting.pop()()

        monkeypatch.setattr(committing, "passing", passing)
        monkeypatch.setattr(applying, "passing", passing)

    return armed


@pytest.mark.parametrize("place", PLACES)
def test_batches_that_the_other_run_loaded_from_the_same_sources_are_not_loaded_twice(
    place: str, tmp_path: Path, second: SecondProcess, meanwhile: Callable[[str, Callable[[], None]], None]
) -> None:
    scene = Scene(tmp_path)
    scene.write_years(YEARS)
    codes: list[int] = []
    meanwhile(place, lambda: codes.append(second.run(scene, "apply").code))
    receipt = scene.lake.apply()
    assert (codes, receipt.complete) == ([0], True)
    notes = [batch.note for batch in receipt.tables[0].of(Outcome.SKIPPED)]
    assert len(notes) == (2 if place == "after-commit" else 3)
    assert all("loaded from the same sources by another run" in note for note in notes)
    scene.finished()


@pytest.mark.parametrize("place", PLACES)
def test_sources_that_change_between_two_runs_end_up_as_they_are_now(
    place: str, tmp_path: Path, second: SecondProcess, meanwhile: Callable[[str, Callable[[], None]], None]
) -> None:
    scene = Scene(tmp_path)
    scene.write_years(YEARS)
    scene.load()
    scene.write_years(YEARS, 1)
    codes: list[int] = []

    def change_and_run() -> None:
        scene.write_years(YEARS[:2], 2)
        codes.append(second.run(scene, "apply").code)

    meanwhile(place, change_and_run)
    receipt = scene.lake.apply()
    assert (codes, receipt.complete) == ([0], True)
    if scene.pending():
        # The run that began first may have read a source before it changed; the next plan sees that.
        scene.load()
    scene.finished()


def test_runs_at_the_same_time_agree(tmp_path: Path, second: SecondProcess) -> None:
    for number in range(20 if LONG else 2):
        chance = random.Random(number)
        scene = Scene(tmp_path / str(number))
        scene.write_years(YEARS)
        for value in (1, 2):
            second.start(scene, "apply")
            time.sleep(chance.random())
            if value == 2:
                scene.write_years(chance.sample(YEARS, 2), 3)
            scene.load()
            ended = second.ended()
            assert ended.code == 0, ended.output
            if scene.pending():
                scene.load()
            scene.finished()
            scene.write_years(YEARS, value)


def test_a_run_that_slept_through_another_one_changes_nothing(tmp_path: Path, second: SecondProcess) -> None:
    scene = Scene(tmp_path)
    scene.write_years(YEARS)
    usual = second.seconds_of(scene, "apply")
    for number in range(30 if LONG else 2):
        chance = random.Random(number)
        scene.write_years(YEARS, number + 1)
        pid = second.start(scene, "apply")
        time.sleep(chance.random() * usual)
        os.kill(pid, signal.SIGSTOP)
        scene.write_years(YEARS[:2], 1_000 + number)
        scene.load()
        awake = scene.rows()
        os.kill(pid, signal.SIGCONT)
        ended = second.ended()
        assert ended.code == 0, ended.output
        assert scene.rows() == awake == scene.source_rows()
        scene.finished()
