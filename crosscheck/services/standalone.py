"""Spark's own cluster manager: a master and workers as processes of their own."""

from __future__ import annotations

import json
import os
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crosscheck.services.processes import LOOPBACK, fetched, free_port, quiet_environment, running

WORKER_MEMORY = "1g"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A master's address and the process ids of its workers."""

    master: str
    workers: tuple[int, ...]

    def executors(self) -> list[int]:
        """Process ids of the executors, which are children of their workers, as Linux tells them."""
        return [child for child, parent in _families() if parent in self.workers]


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Cluster]:
    """The cluster once all workers, of one core each, have registered."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = quiet_environment(
        SPARK_HOME=str(home),
        SPARK_LOCAL_IP=LOOPBACK,
        SPARK_DAEMON_MEMORY="256m",
        JAVA_HOME=_java_home(),
        PATH=os.defpath,
    )
    start = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy.{0}.{1}", "--host", LOOPBACK]
    port, page = free_port(), free_port()
    address = f"spark://{LOOPBACK}:{port}"
    state = f"http://{LOOPBACK}:{page}/json/"
    master = [part.format("master", "Master") for part in start] + ["--port", str(port), "--webui-port", str(page)]
    pids = []
    with ExitStack() as stack:
        stack.enter_context(
            running(
                master,
                folder / "master.log",
                answers=lambda: bool(fetched(state)),
                environment=environment,
                folder=folder,
            )
        )
        for number in range(workers):
            place = folder / f"worker-{number}"
            place.mkdir()
            command = [part.format("worker", "Worker") for part in start]
            command += [
                "--cores",
                "1",
                "--memory",
                WORKER_MEMORY,
                "--work-dir",
                str(place),
                "--webui-port",
                "0",
                address,
            ]
            last = number == workers - 1
            worker = stack.enter_context(
                running(
                    command,
                    folder / f"worker-{number}.log",
                    # They start side by side; the last one waits for all.
                    answers=lambda last=last: not last or _alive_workers(state) == workers,  # type: ignore[misc]
                    environment=environment,
                    folder=place,
                )
            )
            pids.append(worker.pid)
        yield Cluster(address, tuple(pids))


def executors_python(folder: Path) -> str:
    """A Python that has this one's libraries and not relayout.

    The libraries' folder is named in a `.pth` file, and Python does not follow the `.pth` files in such a folder: the
    one that makes relayout importable in place stays without effect.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    own = next((folder / "lib").glob("python*/site-packages"))
    libraries = [entry for entry in sys.path if entry.endswith("site-packages")]
    (own / "libraries.pth").write_text("\n".join(libraries) + "\n")
    return str(folder / "bin" / "python")


def _java_home() -> str:
    from relayout.spark.jars import cache_folder
    from relayout.spark.java import find_java, home_for_spark

    return home_for_spark(find_java(), cache_folder())


def _alive_workers(state: str) -> int:
    answer = fetched(state)
    return int(json.loads(answer)["aliveworkers"]) if answer else 0


def _families() -> Iterator[tuple[int, int]]:
    """Each process with its parent."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        # Processes end while they are listed.
        with suppress(OSError):
            number, _, rest = path.read_text().partition(" ")
            # The name in parentheses may hold blanks; the parent is the second word behind it.
            yield int(number), int(rest.rpartition(")")[2].split()[1])
