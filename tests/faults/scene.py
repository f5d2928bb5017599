"""A lake that is hurt on purpose, and how it looks to those who had no part in that."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import relayout
from relayout.api import Lake
from relayout.commit.receipts import Receipt
from relayout.jobs.plan import Planner
from relayout.ledger.records import BASE_LAYOUT, BatchRecord, stamps_in
from relayout.ledger.state import LedgerState, judge
from relayout.read.catalog import CatalogReader
from relayout.read.ledger import LedgerReader
from relayout.read.tables import facts_of
from relayout.table.facts import TableFacts
from relayout.table.names import TableName
from tests.conftest import SPARK

LONG = os.environ.get("RELAYOUT_FAULTS") == "long"
"""The long form tries every place and many moments."""

Row = tuple[Any, ...]


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

    def write_years(self, years: Iterable[int], value: int = 0) -> None:
        """Two files of five rows for each of the years."""
        for year in years:
            self.write(year, "a", range(5), value)
            self.write(year, "b", range(5), value)

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

    def load(self) -> Receipt:
        """Apply in this process; everything must go well."""
        receipt = self.lake.apply()
        assert receipt.complete, receipt.to_json()
        return receipt

    def whole(self, *states: Counter[Row]) -> None:
        """Readers see each year's rows as they are in one of the states, never a mixture."""
        seen = self.rows()
        for year in {row[0] for rows in (seen, *states) for row in rows}:
            assert _of_year(seen, year) in [_of_year(state, year) for state in states]

    def finished(self) -> None:
        """Nothing tells this table and its ledger from those of a run that nobody disturbed."""
        assert self.rows() == self.source_rows()
        assert set(self.stamped().values()) == {1}
        assert self.pending() == {}
        state = self.state()
        assert (state.unrecorded, dict(state.failed)) == ((), {})
        assert (self.unknown_files(), self.scratch()) == (set(), [])

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

    def left_files(self) -> set[str]:
        """Data files that the ledger knows as left over."""
        config = self.lake.config
        told = LedgerReader(config, CatalogReader(config)).records_with_left_files("readings")
        return {path.removeprefix("file:") for record in told for path in record.left_files}

    def unknown_files(self) -> set[str]:
        """Data files that no snapshot refers to and that the ledger does not know."""
        there = {str(path) for path in self.data_folder.rglob("*") if path.is_file()}
        return {path for path in there if not path.endswith(".crc")} - self.referenced_files() - self.left_files()

    def unused_manifests(self) -> set[str]:
        """Manifests and lists of manifests that no snapshot uses."""
        native = self.native()
        used = {
            path.removeprefix("file:")
            for snapshot in native.metadata.snapshots
            for path in (snapshot.manifest_list, *(one.manifest_path for one in snapshot.manifests(native.io)))
        }
        return {str(path) for path in self.data_folder.with_name("metadata").glob("*.avro")} - used

    def scratch(self) -> list[str]:
        return [str(path) for path in self.folder.rglob(".relayout-*")]


def _of_year(rows: Counter[Row], year: int) -> Counter[Row]:
    return Counter({row: count for row, count in rows.items() if row[0] == year})


def _no_spark(*_: object) -> dict[str, str]:
    raise AssertionError("planning needed Spark")
