"""Starting a server, waiting until it answers, stopping it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

LOOPBACK = "127.0.0.1"
START_SECONDS = 120
STOP_SECONDS = 20
LAST_WORDS_CHARACTERS = 600


class NotObtainable(Exception):
    """This machine lacks what a service needs; says what."""


def free_port() -> int:
    """A port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    *,
    answers: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user: str | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has begun to answer; it is ended by its own id, whatever happens meanwhile."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment) if environment is not None else None,
            cwd=folder,
            user=user,
        )
    try:
        _wait_for(process, answers, log)
        yield process
    finally:
        stopped(process)


def listens(port: int) -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def fetched(address: str) -> bytes:
    """The body behind an address, empty when nobody answers yet."""
    try:
        with urlopen(address, timeout=5) as answer:
            return bytes(answer.read())
    except (URLError, ConnectionError, TimeoutError):
        return b""


def quiet_environment(**more: str) -> dict[str, str]:
    """What a server may know of ours: no Python paths, so that nothing of this checkout is found by accident."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK_"))}
    return {**kept, **more}


def _wait_for(process: subprocess.Popen[bytes], answers: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers():
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            why = f"ended with {process.returncode}" if ended else f"did not answer within {START_SECONDS} seconds"
            words = log.read_text(errors="replace")[-LAST_WORDS_CHARACTERS:]
            raise RuntimeError(f"{process.args!r} {why}: {words}")
        time.sleep(0.1)


def stopped(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to end, and end it when it does not."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
