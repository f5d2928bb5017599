"""Lakes that are hurt on purpose: in this process, in a warm second one, and in whole command lines of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import relayout
from relayout.api import Lake
from relayout.jobs.plan import Planner
from relayout.ledger.records import BASE_LAYOUT, BatchRecord, stamps_in
from relayout.ledger.state import LedgerState, judge
from relayout.read.catalog import CatalogReader
from relayout.read.ledger import LedgerReader
from relayout.read.tables import facts_of
from relayout.spark.jars import cache_folder
from relayout.table.facts import TableFacts
from relayout.table.names import TableName

SPARK = {"master": "local[2]", "driver_memory": "1g", "task_memory": "512m"}
LONG = os.environ.get("RELAYOUT_FAULTS") == "long"

Row = tuple[Any, ...]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here starts Spark and does harm."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.faults)
            item.add_marker(pytest.mark.spark)


@dataclass
class Scene:
    """A folder with sources `in/YEAR_PART.json` and a table `readings` that is loaded from them year by year."""

    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table = {
            "source": "in/{year}_{part}.json",
            "partitions": {"keys": [{"name": "year", "type": "INTEGER"}]},
            "batch_partition_columns": ["year"],
            "schema": {"id": "INTEGER", "value": "INTEGER"},
        }
        told = {
            "namespace": "db",
            "spark": SPARK,
            "defaults": {"retry_delay_ms": 1},
            "tables": {"readings": table | self.table},
        }
        (self.folder / "in").mkdir(parents=True)
        (self.folder / "relayout.yaml").write_text(json.dumps(told | self.settings), "utf-8")

    # Sources.

    def write(self, year: int, part: str, ids: Sequence[int], value: int = 0) -> Path:
        """A source file that replaces the one of this name at once, as careful writers do."""
        path = self.folder / "in" / f"{year}_{part}.json"
        fresh = path.with_suffix(".fresh")
        fresh.write_text("".join(json.dumps({"id": number, "value": value}) + "\n" for number in ids), "utf-8")
        fresh.replace(path)
        return path

    def source_rows(self) -> Counter[Row]:
        """What the table must hold: rows of all sources as (year, part, id, value)."""
        found: Counter[Row] = Counter()
        for path in (self.folder / "in").glob("*.json"):
            year, part = path.stem.split("_")
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                found[int(year), part, row["id"], row["value"]] += 1
        return found

    # The table, read without the process that wrote it.

    @property
    def lake(self) -> Lake:
        return relayout.open(self.folder)

    def native(self, table: str = "readings") -> Any:
        return CatalogReader(self.lake.config).load(TableName(("db",), table))

    def rows(self) -> Counter[Row]:
        """Rows as (year, part, id, value), read through PyIceberg."""
        native = self.native()
        if native is None:
            return Counter()
        found = native.scan(selected_fields=("year", "part", "id", "value")).to_arrow().to_pylist()
        return Counter((row["year"], row["part"], row["id"], row["value"]) for row in found)

    def facts(self) -> TableFacts:
        return facts_of(self.native(), TableName(("db",), "readings"))

    def records(self) -> tuple[BatchRecord, ...]:
        config = self.lake.config
        return LedgerReader(config, CatalogReader(config)).records("readings")

    def state(self) -> LedgerState:
        return judge(self.facts().ancestry, self.records(), BASE_LAYOUT)

    def stamped(self) -> Counter[str]:
        """How often each batch was stamped, with the same sources, in the history of the table."""
        return Counter(
            f"{stamp.batch} {stamp.fingerprint}"
            for snapshot in self.facts().ancestry
            for stamp in stamps_in(snapshot.summary, BASE_LAYOUT)
        )

    def pending(self) -> dict[str, str]:
        """Open batches with the reason; planning must not need Spark here."""
        plan = Planner(self.lake.config, _no_spark).plan().plan
        assert [table.problem for table in plan.tables] == [""]
        return {str(batch.key): batch.needs or str(batch.reason) for batch in plan.tables[0].batches}

    def call(self, procedure: str) -> None:
        """One of Iceberg's own procedures."""
        self.lake.sql(f"CALL lake.system.{procedure}").collect()

    # Files.

    @property
    def data_folder(self) -> Path:
        return Path(self.facts().location.removeprefix("file:")) / "data"

    def referenced_files(self) -> set[str]:
        native = self.native()
        return {
            entry.data_file.file_path.removeprefix("file:")
            for snapshot in native.metadata.snapshots
            for manifest in snapshot.manifests(native.io)
            for entry in manifest.fetch_manifest_entry(native.io, discard_deleted=False)
        }

    def unknown_files(self) -> set[str]:
        """Data files that no snapshot refers to and that the ledger does not know as left over."""
        config = self.lake.config
        told = LedgerReader(config, CatalogReader(config)).records_with_sources("readings", ())
        left = {path.removeprefix("file:") for record in told for path in record.left_files}
        there = {str(path) for path in self.data_folder.rglob("*") if path.is_file()}
        return {path for path in there if not path.endswith(".crc")} - self.referenced_files() - left

    def left_files(self) -> set[str]:
        config = self.lake.config
        told = LedgerReader(config, CatalogReader(config)).records_with_sources("readings", ())
        return {path for record in told for path in record.left_files}

    def scratch(self) -> list[str]:
        return [str(path) for path in self.folder.rglob(".relayout-*")]


def _no_spark(*_: object) -> dict[str, str]:
    raise AssertionError("planning needed Spark")


@dataclass
class Ended:
    """How a command line ended; `code` is negative for a signal."""

    code: int
    output: str


class SecondProcess:
    """The warm second process, one order at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._orders = 0
        program = [sys.executable, str(Path(__file__).with_name("second_process.py"))]
        warehouse = {"warehouse": str(folder / "lake"), "spark": SPARK, "tables": {}}
        self._process = subprocess.Popen(
            [*program, json.dumps(warehouse)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, scene: Scene, *arguments: str, **environment: str) -> int:
        """Give the order and return the pid of the process that works on it."""
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
        return Ended(int(self._answer()["exit"]), self._output.read_text("utf-8"))

    def run(self, scene: Scene, *arguments: str, **environment: str) -> Ended:
        self.start(scene, *arguments, **environment)
        return self.ended()

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


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a lake remembers of source files stays with the tests; the jars are the machine's, fetched if need be."""
    given = {name: os.environ.get(name) for name in ("RELAYOUT_CACHE", "RELAYOUT_JARS")}
    started = relayout.open({"warehouse": str(tmp_path_factory.mktemp("first")), "spark": SPARK, "tables": {}}).spark
    os.environ.setdefault("RELAYOUT_JARS", str(cache_folder() / "jars"))
    os.environ["RELAYOUT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    started.stop()
    for name, value in given.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@pytest.fixture(scope="session")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondProcess]:
    process = SecondProcess(tmp_path_factory.mktemp("second"))
    yield process
    process.stop()
