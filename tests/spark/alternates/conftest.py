"""Tables with alternates, and the proof that both hold the same rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from relayout.alternates.freshness import freshest, head_account
from relayout.alternates.registry import Found
from relayout.api import Lake
from relayout.jobs.alternates.shelf import alternates_in
from relayout.read.catalog import CatalogReader
from relayout.read.tables import facts_of
from relayout.table.alternates import Account
from relayout.table.facts import TableFacts
from relayout.table.names import TableName

Row = Mapping[str, Any]


class Farm:
    """One lake with a table of years and regions, its sources, and what its alternates hold."""

    def __init__(self, make_lake: Callable[..., Lake], folder: Path) -> None:
        self._make_lake = make_lake
        self._folder = folder
        self.lake: Lake

    def declare(self, *alternates: Mapping[str, Any], **table: Any) -> Lake:
        """The lake with one table `income` and these alternates; the sources and what is in it stay."""
        told = {
            "source": str(self._folder / "in" / "income_{year}_*.json"),
            "partitions": {"keys": [{"name": "year", "type": "INTEGER"}]},
            "batch_partition_columns": ["year"],
            "alternate_partitions": list(alternates),
            **table,
        }
        told = {key: value for key, value in told.items() if value is not None}
        self.lake = self._make_lake(
            self._folder / "lake", {"income": told}, defaults={"retries": 1, "retry_delay_ms": 1}
        )
        return self.lake

    def undeclare(self) -> Lake:
        """The same lake with another table, which has one source file."""
        other = self._folder / "in" / "other.json"
        other.write_text('{"a": 1}\n', "utf-8")
        self.lake = self._make_lake(self._folder / "lake", {"other": {"source": str(other)}})
        return self.lake

    def source(self, year: int, *rows: Row, name: str = "a") -> None:
        path = self._folder / "in" / f"income_{year}_{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def years(self, *years: int, rows: int = 6, salt: int = 0) -> None:
        """Sources of so many rows for each year."""
        for year in years:
            self.source(year, *({"geo": f"g{n % 4}", "value": n + salt, "note": None} for n in range(rows)))

    @property
    def alternates(self) -> dict[str, Found]:
        """By name; of two with one name the one with the smaller table name is left out."""
        found = alternates_in(CatalogReader(self.lake.config), self.lake.config)
        return {one.name: one for one in sorted(found, key=lambda one: one.table)}

    def rows(self, table: str) -> Counter[str]:
        """All rows, as an engine reads them that shares no code with the one that wrote them."""
        rows = self.lake.table(table).scan().to_arrow().to_pylist()
        return Counter(repr(sorted(row.items())) for row in rows)

    def account(self, name: str) -> Account:
        account = head_account(self.alternates[name].facts.ancestry)
        assert account is not None
        return account

    @property
    def base(self) -> TableFacts:
        name = TableName(("db",), "income")
        native = CatalogReader(self.lake.config).load(name)
        assert native is not None
        return facts_of(native, name)

    def assert_honest(self) -> None:
        """What each alternate would serve of the base's current snapshot is what the base holds there."""
        base = self.base
        rows = self.lake.table("income").scan().to_arrow().to_pylist()
        for found in self.alternates.values():
            fresh = freshest(found.facts.ancestry, base.ancestry)
            if fresh is None:
                continue
            own = self.lake.table(found.table).scan(snapshot_id=fresh.snapshot_id).to_arrow().to_pylist()
            named = {dict(key.items).get("year") for key in fresh.account.batches}
            served = [[row for row in each if (row["year"] in named) == fresh.account.only] for each in (rows, own)]
            expected, seen = (Counter(repr(sorted(row.items())) for row in each) for each in served)
            assert seen == expected, found.name

    def assert_in_step(self, *names: str) -> None:
        """Each alternate holds exactly the rows of the base, and says so of the base's current snapshot."""
        base = self.lake.table("income")
        expected = self.rows("income")
        snapshot = base.current_snapshot()
        assert snapshot is not None
        for name in names or tuple(self.alternates):
            assert self.rows(self.alternates[name].table) == expected, name
            assert self.account(name) == Account(snapshot.snapshot_id), name


BY_GEO: Mapping[str, Any] = {
    "name": "by_geo",
    "partition": {"keys": [{"name": "geo", "transform": "bucket[4]"}]},
    "sort": ["geo", "year"],
}
SORTED: Mapping[str, Any] = {"name": "by_value", "sort": ["value desc"]}


@pytest.fixture
def farm(make_lake: Callable[..., Lake], tmp_path: Path) -> Farm:
    return Farm(make_lake, tmp_path)
