"""A Spark standalone cluster of two workers, and whole command lines that run on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crosscheck.services.standalone import Cluster, executors_python, standalone
from relayout.spark.jars import cache_folder


@dataclass(frozen=True)
class Client:
    """Runs `relayout` in a process of its own, whose executors run a Python without relayout."""

    cluster: Cluster
    python: str
    folder: Path

    def start(self, house: Path, tables: Mapping[str, Any], *arguments: str) -> subprocess.Popen[bytes]:
        """Begin a command on a lake at `house`."""
        spark = {
            "master": self.cluster.master,
            "driver_memory": "512m",
            "task_memory": "256m",
            "conf": {"spark.executor.memory": "512m"},
        }
        told = {"warehouse": str(house), "namespace": "db", "spark": spark, "tables": tables}
        config = house.with_suffix(".json")
        config.write_text(json.dumps(told), "utf-8")
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": self.python,
            "RELAYOUT_CACHE": str(self.cache),
            "RELAYOUT_JARS": os.environ.get("RELAYOUT_JARS") or str(cache_folder() / "jars"),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "relayout", "-c", str(config), *arguments, "--json"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def driver_log(self) -> str:
        """What the JVMs of all commands so far printed."""
        return "".join(path.read_text(errors="replace") for path in self.cache.glob("logs/spark-*.log"))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("cluster")
    with standalone(folder, 2) as cluster:
        yield Client(cluster, executors_python(folder / "python"), folder)
