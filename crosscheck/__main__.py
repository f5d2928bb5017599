"""`python -m crosscheck [PLACE …]`: walk the main journey at the named places, or at all, and say what held.

`--list` names the places. With `--allow-missing` a place whose services cannot be had on this machine is no failure.
What is fetched and built stays in `build/crosscheck/tools`; logs of the last walk stay beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from crosscheck.journey import Job
from crosscheck.judge import judge_command
from crosscheck.places import PLACES, Folders, Place
from crosscheck.services.packages import last_line
from crosscheck.services.processes import NotObtainable

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "crosscheck"
TOOLS = BUILD / "tools"
LOGS = BUILD / "logs"
WALK_SECONDS = 900


class Verdict(StrEnum):
    """How a walk ended."""

    HELD = "held"
    BROKEN = "BROKEN"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one place."""

    place: str
    verdict: Verdict
    seconds: float
    what: str


def main(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(arguments)
    if asked.list:
        for place in PLACES:
            print(f"{place.name:<16} {place.what}")
        return 0
    unknown = sorted(set(asked.places) - {place.name for place in PLACES})
    if unknown:
        sys.stderr.write(f"no such place: {', '.join(unknown)}; `python -m crosscheck --list` names them\n")
        return 2
    outcomes = list(_outcomes([place for place in PLACES if place.name in asked.places or not asked.places]))
    counts = {verdict: sum(outcome.verdict is verdict for outcome in outcomes) for verdict in Verdict}
    print(", ".join(f"{count} {verdict.lower()}" for verdict, count in counts.items() if count), flush=True)
    failed = counts[Verdict.BROKEN] + (0 if asked.allow_missing else counts[Verdict.MISSING])
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m crosscheck", description="Walk the main journey at several places.")
    parser.add_argument("places", nargs="*", metavar="PLACE", help="one of those that --list names; all when left out")
    parser.add_argument("--list", action="store_true", help="name the places")
    parser.add_argument("--allow-missing", action="store_true", help="what cannot be had here is no failure")
    return parser


def _outcomes(places: Sequence[Place]) -> Iterator[Outcome]:
    """One after the other: each has a Spark and servers of its own."""
    shutil.rmtree(LOGS, ignore_errors=True)
    for path in (TOOLS, LOGS):
        path.mkdir(parents=True, exist_ok=True)
    for place in places:
        outcome = _walked(place)
        print(f"{outcome.verdict:<8} {outcome.place:<16} {outcome.seconds:6.1f} s  {outcome.what}", flush=True)
        yield outcome


def _walked(place: Place) -> Outcome:
    """Services first, whose building is not counted as walking; then the journey."""
    begun = time.monotonic()
    try:
        judge = judge_command(TOOLS / "judge")
        with _folder(place) as fresh, place.job(Folders(fresh, TOOLS)) as job:
            begun = time.monotonic()
            verdict, what = _journey(place.name, replace(job, judge=judge), fresh)
    except NotObtainable as reason:
        verdict, what = Verdict.MISSING, str(reason)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        verdict, what = Verdict.BROKEN, f"its services did not start: {error}"
    return Outcome(place.name, verdict, time.monotonic() - begun, what)


@contextmanager
def _folder(place: Place) -> Iterator[Path]:
    """A folder that everybody may enter, because PostgreSQL runs as another user; its logs outlive it."""
    with tempfile.TemporaryDirectory(prefix=f"crosscheck-{place.name}-", ignore_cleanup_errors=True) as name:
        fresh = Path(name)
        fresh.chmod(0o755)
        try:
            yield fresh
        finally:
            for log in fresh.glob("*.log"):
                shutil.copy(log, LOGS / f"{place.name}-{log.name}")


def _journey(name: str, job: Job, fresh: Path) -> tuple[Verdict, str]:
    """What the journey's own process says."""
    told = fresh / "job.json"
    told.write_text(json.dumps(job.to_json()), "utf-8")
    told.chmod(0o600)
    environment = {**os.environ, **({"PYSPARK_PYTHON": job.python} if job.python else {})}
    log = fresh / "journey.log"
    with log.open("wb") as errors:
        answer = subprocess.run(
            [sys.executable, "-m", "crosscheck.journey", str(told)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            timeout=WALK_SECONDS,
            check=False,
        )
    if answer.returncode not in (0, 1) or not answer.stdout:
        return Verdict.BROKEN, f"{_error_in(log.read_text(errors='replace'))} (see {LOGS / f'{name}-{log.name}'})"
    said = json.loads(answer.stdout)
    if said["broken"]:
        return Verdict.BROKEN, f"after {len(said['held'])} promises: {said['broken']}"
    return Verdict.HELD, f"{len(said['held'])} promises"


def _error_in(text: str) -> str:
    """The line that names the exception; Java's stack comes behind it."""
    named = [line for line in text.splitlines() if re.match(r"[\w.]+(Error|Exception|Broken|Problem)\b", line)]
    return named[-1] if named else last_line(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
