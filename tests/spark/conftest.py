"""Lakes for tests that run the engine: each has a folder of its own, all share the one Spark of the test process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import relayout
from relayout.api import Lake

MakeLake = Callable[..., Lake]


@pytest.fixture(scope="session")
def make_lake(warm_spark: dict[str, str]) -> MakeLake:
    """`make_lake(folder, {"t": {…}})`: writes `relayout.yaml` into the folder and opens it."""

    def make(folder: Path, tables: Mapping[str, Mapping[str, Any]], **settings: Any) -> Lake:
        told = {"spark": warm_spark, "defaults": {"retry_delay_ms": 1}, "namespace": "db", "tables": tables} | settings
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "relayout.yaml").write_text(json.dumps(told), "utf-8")
        return relayout.open(folder)

    return make
