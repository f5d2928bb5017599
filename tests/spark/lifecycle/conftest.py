"""Sources that come, change and go, and what a table holds of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from relayout.api import Lake
from relayout.ingest.plan import IngestPlan, PlannedBatch


class Downloads:
    """A folder of source files, one JSON object per line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def pattern(self, text: str) -> str:
        return str(self.folder / text)

    def write(self, name: str, *rows: Mapping[str, Any]) -> str:
        """The file with exactly these rows; its address."""
        return self.tear(name, "".join(json.dumps(row) + "\n" for row in rows))

    def tear(self, name: str, text: str) -> str:
        """The file with this text, whatever a reader will say of it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return str(path)

    def touch(self, name: str) -> None:
        """Another time of change, the same content."""
        facts = (self.folder / name).stat()
        os.utime(self.folder / name, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1_000_000_000))

    def remove(self, name: str) -> str:
        (self.folder / name).unlink()
        return str(self.folder / name)


@pytest.fixture
def lake_of(make_lake: Callable[..., Lake], tmp_path: Path) -> Callable[..., Lake]:
    """`lake_of({"t": {…}})`: the test's lake, each time with the tables and settings given; nothing is tried twice."""

    def opened(tables: Mapping[str, Any], folder: str = "lake", **settings: Any) -> Lake:
        defaults = {"retries": 1, **settings.pop("defaults", {})}
        return make_lake(tmp_path / folder, tables, defaults=defaults, **settings)

    return opened


@pytest.fixture
def downloads(tmp_path: Path) -> Downloads:
    return Downloads(tmp_path / "in")


@pytest.fixture
def rows_in() -> Callable[[Lake, str], list[tuple[Any, ...]]]:
    """All rows of a table, sorted, as an engine reads them that shares no code with the one that wrote them."""

    def read(lake: Lake, table: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row.values()) for row in lake.table(table).scan().to_arrow().to_pylist()), key=repr)

    return read


@pytest.fixture
def pending() -> Callable[..., dict[str, str]]:
    """The pending batches of a plan's only table: `2020` → `load, source changed`, with what it needs if anything."""

    def told(plan: IngestPlan, table: str = "") -> dict[str, str]:
        plans = [each for each in plan.tables if not table or each.table == table]
        assert len(plans) == 1
        return {_values(batch): _fate(batch) for batch in plans[0].batches}

    return told


def _values(batch: PlannedBatch) -> str:
    return "/".join("null" if value is None else str(value) for _, value in batch.key.items)


def _fate(batch: PlannedBatch) -> str:
    words = [str(batch.action), str(batch.reason)]
    words += [f"needs {batch.needs}"] if batch.needs else []
    words += ["blocked"] if batch.blocked else []
    return ", ".join(words)
