"""Other processes of relayout: a warm one that takes orders, and whole command lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.scene import Scene


@dataclass
class Ended:
    """How a command line ended; `code` is negative for a signal."""

    code: int
    output: str


def command_line(scene: Scene, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A command line with a JVM of its own, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "relayout", "-c", str(scene.folder), *arguments],
        env=os.environ | environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class SecondProcess:
    """The warm second process, one order at a time."""

    def __init__(self, folder: Path, spark: dict[str, str]) -> None:
        self._folder = folder
        self._orders = 0
        self._at_work = False
        program = [sys.executable, str(Path(__file__).with_name("second_process.py"))]
        warehouse = {"warehouse": str(folder / "lake"), "spark": spark, "tables": {}}
        self._process = subprocess.Popen(
            [*program, json.dumps(warehouse)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, scene: Scene, *arguments: str, **environment: str) -> int:
        """Give the order and return the pid of the process that works on it."""
        if self._at_work:
            # Whoever gave the last order did not wait for its end.
            self._answer()
        self._at_work = True
        self._orders += 1
        self._output = self._folder / f"output-{self._orders}"
        order = {
            "arguments": ["-c", str(scene.folder), *arguments],
            "environment": environment,
            "output": str(self._output),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._answer()["pid"])

    def ended(self) -> Ended:
        code = int(self._answer()["exit"])
        self._at_work = False
        return Ended(code, self._output.read_text("utf-8"))

    def run(self, scene: Scene, *arguments: str, **environment: str) -> Ended:
        self.start(scene, *arguments, **environment)
        return self.ended()

    def seconds_of(self, scene: Scene, *arguments: str) -> float:
        """How long it takes when nobody disturbs it."""
        begun = time.monotonic()
        ended = self.run(scene, *arguments)
        assert ended.code == 0, ended.output
        return time.monotonic() - begun

    def killed_at(self, place: str, scene: Scene, *arguments: str) -> Ended:
        """Run until the place is passed and the process kills itself there."""
        return self.run(scene, *arguments, RELAYOUT_KILL_AT=place)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told
