"""Lakes for tests that run the engine: each has a folder of its own, all share the one Spark of the test process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import relayout
from relayout.api import Lake
from relayout.spark.jars import cache_folder

MakeLake = Callable[..., Lake]

SPARK = {"master": "local[2]", "driver_memory": "1g", "task_memory": "512m"}


@pytest.fixture(scope="session")
def make_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeLake]:
    """`make_lake(folder, {"t": {…}})`: writes `relayout.yaml` into the folder and opens it.

    What a lake remembers of source files stays with the tests; the jars are the machine's.
    """
    given = {name: os.environ.get(name) for name in ("RELAYOUT_CACHE", "RELAYOUT_JARS")}
    started = relayout.open({"warehouse": str(tmp_path_factory.mktemp("first")), "spark": SPARK, "tables": {}}).spark
    os.environ.setdefault("RELAYOUT_JARS", str(cache_folder() / "jars"))
    os.environ["RELAYOUT_CACHE"] = str(tmp_path_factory.mktemp("cache"))

    def make(folder: Path, tables: Mapping[str, Mapping[str, Any]], **settings: Any) -> Lake:
        told = {"spark": SPARK, "defaults": {"retry_delay_ms": 1}, "namespace": "db", "tables": tables} | settings
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "relayout.yaml").write_text(json.dumps(told), "utf-8")
        return relayout.open(folder)

    yield make
    started.stop()
    for name, value in given.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
