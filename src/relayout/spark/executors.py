"""What executors need: this package, shipped with the session, and its libraries in the Python they run."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.errors import EnvironmentProblem
from relayout.spark.jars import cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIBRARIES = ("duckdb", "numpy", "pandas", "pyarrow", "pyiceberg", "pyroaring")
"""What kernels import; an executor's Python has to have them."""


def ship_package(spark: SparkSession) -> None:
    """Send this package to executors in other processes, and see that their Python can run it."""
    master = str(spark.sparkContext.master)
    if master == "local" or master.startswith("local["):
        return
    spark.sparkContext.addPyFile(str(package_archive()))
    found = spark.sparkContext.parallelize([0], 1).mapPartitions(_what_is_missing).collect()
    for host, python, missing in found:
        if missing:
            raise EnvironmentProblem(
                f"executors cannot import {', '.join(missing)}",
                where=f"{python} on {host}",
                next="install relayout's requirements into that Python, or name one that has them in PYSPARK_PYTHON",
            )


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


def _what_is_missing(_: Iterable[int]) -> Iterator[tuple[str, str, list[str]]]:
    import importlib
    import socket
    import sys

    missing = []
    for library in LIBRARIES:
        try:
            importlib.import_module(library)
        except ImportError:
            missing.append(library)
    yield socket.gethostname(), sys.executable, missing
