"""What executors need: this package, shipped with the session, and its libraries in the Python they run."""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.errors import EnvironmentProblem
from relayout.spark.jars import cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIBRARIES = ("duckdb", "numpy", "pandas", "pyarrow", "pyiceberg", "pyroaring")
"""What kernels import; an executor's Python has to have them."""

ANOTHER_PYTHON = "install relayout's requirements into that Python, or name one that has them in PYSPARK_PYTHON"

_PYTHON_ERROR = re.compile(r"(?!org\.|java)[\w.]*(?:Error|Exception): ")


def ship_package(spark: SparkSession) -> None:
    """Send this package to executors in other processes, and see that their Python can run it."""
    master = str(spark.sparkContext.master)
    if master == "local" or master.startswith("local["):
        return
    spark.sparkContext.addPyFile(str(package_archive()))
    for found in pythons_of_tasks(spark):
        if found.missing:
            raise EnvironmentProblem(
                f"executors cannot import {', '.join(found.missing)}",
                where=f"{found.python} on {found.host}",
                next=ANOTHER_PYTHON,
            )


@dataclass(frozen=True, slots=True)
class TaskPython:
    """The Python that runs tasks on one host: versions of the libraries that it has, names of those that it lacks."""

    host: str
    python: str
    versions: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]


def pythons_of_tasks(spark: SparkSession, tasks: int = 1) -> list[TaskPython]:
    """Run this many tasks at once and tell apart the Pythons that they ran in."""
    libraries = LIBRARIES

    # Defined here so that it travels by itself: what this module imports may be just what an executor lacks.
    def told(_: Iterable[int]) -> Iterator[tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...]]]:
        import importlib
        import socket
        import sys

        versions, missing = [], []
        for library in libraries:
            try:
                versions.append((library, getattr(importlib.import_module(library), "__version__", "")))
            except ImportError:
                missing.append(library)
        yield socket.gethostname(), sys.executable, tuple(versions), tuple(missing)

    try:
        answers = spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(told).collect()
    except Exception as error:
        raise EnvironmentProblem(
            f"Python does not run inside Spark's tasks: {_why(error)}",
            where=f"master {spark.sparkContext.master}, PYSPARK_PYTHON={os.environ.get('PYSPARK_PYTHON', '')}",
            next=ANOTHER_PYTHON,
        ) from error
    return [TaskPython(*answer) for answer in sorted(set(answers))]


def _why(error: Exception) -> str:
    """The last Python error in Spark's message, which is the cause of those before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if _PYTHON_ERROR.match(line)), lines[0] if lines else repr(error))


def package_archive() -> Path:
    """This package as a zip, code and data, so that executors run exactly the kernels that the driver planned with.

    The name tells the content: the same package is packed once, and a changed one never meets an old copy of itself.
    """
    content = _packed(Path(__file__).resolve().parent.parent)
    folder = cache_folder() / "package"
    archive = folder / f"relayout-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = archive.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(content)
        fresh.replace(archive)
    return archive


def _packed(package: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = (Path(package.name) / path.relative_to(package)).as_posix()
                # A fixed time, so that equal packages are equal archives.
                target.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
