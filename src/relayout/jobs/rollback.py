"""`relayout rollback`: an older snapshot of a table becomes the current one again, and its alternates follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.commit.receipts import AlternateReceipt, Outcome
from relayout.commit.tables import roll_back_table
from relayout.config import Config
from relayout.errors import MissingError
from relayout.jobs.alternates.cascade import follow
from relayout.jobs.progress import Listener
from relayout.read.catalog import CatalogReader
from relayout.read.tables import facts_of
from relayout.table.names import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Rollback:
    """What became of it; `before` and `after` are snapshot ids, equal where nothing had to be done."""

    table: str
    before: int | None
    after: int
    alternates: tuple[AlternateReceipt, ...] = ()

    @property
    def complete(self) -> bool:
        return all(one.outcome is not Outcome.FAILED for one in self.alternates)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kind": "rollback",
            "table": self.table,
            "snapshot_before": self.before,
            "snapshot_after": self.after,
            "complete": self.complete,
            "alternates": [one.to_json() for one in self.alternates],
        }


def roll_back(spark: SparkSession, config: Config, table: str, to: int, listener: Listener) -> Rollback:
    """Go back to a snapshot that the current one came from; MissingError for any other."""
    name = parse(table, config.namespace, config.catalog.name)
    native = CatalogReader(config).load(name)
    if native is None:
        raise MissingError(
            f"there is no table {name}", where=config.catalog.name, next="`relayout status` lists the tables"
        )
    facts = facts_of(native, name)
    known = [snapshot.snapshot_id for snapshot in facts.ancestry]
    if to not in known:
        raise MissingError(
            f"snapshot {to} is not one that {name} came from",
            where=str(name),
            next="its snapshots, newest first: " + (", ".join(str(number) for number in known[:10]) or "none"),
        )
    if to != facts.current_snapshot_id:
        roll_back_table(spark, config, name, to)
    declared = config.tables.get(name.table) if name.namespace == tuple(config.namespace.split(".")) else None
    followed = follow(spark, config, declared, listener) if declared is not None else ()
    return Rollback(str(name), facts.current_snapshot_id, to, followed)
