"""A process and all that it starts, held to a limit of memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 0.05
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Watched:
    """How a process tree ended: what it printed, how much memory it took at most, and what ended it."""

    output: str
    peak_bytes: int
    outcome: str

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


def run_within(arguments: Sequence[str], limit_bytes: int) -> Watched:
    """Run a Python module in a session of its own; the tree is killed as soon as it holds more than the limit."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    peak = 0
    outcome = ""
    while process.poll() is None:
        held = memory_of_tree(process.pid)
        peak = max(peak, held)
        if held > limit_bytes and not outcome:
            outcome = "took more memory than the limit and was killed"
            for pid in tree_of(process.pid):
                _kill(pid)
        time.sleep(LOOK_SECONDS)
    output = process.stdout.read() if process.stdout else ""
    if not outcome:
        outcome = "passed" if process.returncode == 0 else f"failed with exit code {process.returncode}"
    return Watched(output, peak, outcome)


def tree_of(root: int) -> list[int]:
    """The process and everything that it and its children started, as far as it runs."""
    children: dict[int, list[int]] = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                # The name in parentheses may hold anything; what follows it is regular.
                fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def memory_of_tree(root: int) -> int:
    """Bytes in memory, each page that processes share counted once."""
    return sum(_proportional_bytes(pid) for pid in tree_of(root))


def _proportional_bytes(pid: int) -> int:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
