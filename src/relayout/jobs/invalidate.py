"""`relayout invalidate`: loaded batches are marked as not done, so that the next `apply` loads them again.

Nothing is deleted: the rows stay visible until they are replaced. A mark names the commit that it voids, so a batch
that is loaded anew in the meantime stays done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.commit.ledger_table import append_records, ensure_ledger
from relayout.config import Config
from relayout.errors import MissingError
from relayout.jobs.batch_texts import named_batches
from relayout.jobs.record import now_ms
from relayout.ledger.records import BASE_LAYOUT, BatchRecord, BatchStamp, State
from relayout.ledger.state import judge
from relayout.read.catalog import CatalogReader
from relayout.read.ledger import LedgerReader
from relayout.read.tables import facts_of
from relayout.table.batches import BatchKey
from relayout.table.facts import TableFacts
from relayout.table.names import TableName, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INVALIDATION_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class InvalidatedBatch:
    """A loaded batch and the commit that shall no longer count."""

    stamp: BatchStamp
    snapshot_id: int
    sequence_number: int

    @property
    def key(self) -> BatchKey:
        return self.stamp.batch

    @property
    def rows(self) -> int:
        return self.stamp.rows

    def to_json(self) -> dict[str, Any]:
        return {"batch": dict(self.key.items), "snapshot_id": self.snapshot_id, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Invalidation:
    """What is to be marked, in the order of the keys; chosen batches that are marked already are only counted."""

    table: str
    batches: tuple[InvalidatedBatch, ...]
    already: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": INVALIDATION_SCHEMA,
            "kind": "invalidation",
            "table": self.table,
            "batches": [batch.to_json() for batch in self.batches],
            "already_invalidated": self.already,
        }


def plan_invalidation(config: Config, table: str, batches: Sequence[str]) -> Invalidation:
    """What would be marked: the loaded batches that the texts name (see `named_batches`), all of them without texts."""
    name = parse(table, config.namespace, config.catalog.name)
    reader = CatalogReader(config)
    facts = _facts(config, reader, name)
    done = judge(facts.ancestry, LedgerReader(config, reader).records(name.table), BASE_LAYOUT).done
    types = {column.name: column.type for column in facts.schema}
    loaded = sorted(done, key=BatchKey.sort_key)
    chosen = [done[key] for key in (named_batches(batches, name.table, loaded, types) if batches else loaded)]
    return Invalidation(
        name.table,
        tuple(
            InvalidatedBatch(batch.stamp, batch.snapshot_id, batch.sequence_number)
            for batch in chosen
            if not batch.invalidated
        ),
        already=sum(batch.invalidated for batch in chosen),
    )


def invalidate(spark: SparkSession, config: Config, planned: Invalidation) -> None:
    """Mark the batches in the ledger, all in one commit; without batches nothing is written."""
    if planned.batches:
        ensure_ledger(spark, config)
        append_records(spark, config, invalidated_records(planned, now_ms()))


def invalidated_records(planned: Invalidation, at_ms: int) -> list[BatchRecord]:
    """The ledger lines that void the stamps."""
    return [
        BatchRecord(
            table_name=planned.table,
            layout=BASE_LAYOUT,
            batch=batch.key,
            state=State.INVALIDATED,
            fingerprint=batch.stamp.fingerprint,
            schema_hash=batch.stamp.schema_hash,
            snapshot_id=batch.snapshot_id,
            previous_stamp=None,
            sequence_number=batch.sequence_number,
            plan_id="",
            run_id="",
            rows=batch.stamp.rows,
            files=batch.stamp.files,
            size_bytes=batch.stamp.size_bytes,
            seconds=0.0,
            error="",
            recorded_at_ms=at_ms,
        )
        for batch in planned.batches
    ]


def _facts(config: Config, reader: CatalogReader, name: TableName) -> TableFacts:
    """The table as it is; only tables of the configured namespace have a ledger there."""
    at_home = name.namespace == tuple(config.namespace.split("."))
    native = reader.load(name) if at_home else None
    if native is not None:
        return facts_of(native, name)
    if at_home and name.table in config.tables:
        raise MissingError(
            f"{name} was never loaded: there is no such table yet", where=config.file, next="run `relayout apply`"
        )
    raise MissingError(
        f"there is no table {name}" if at_home else f"{name} does not lie in namespace {config.namespace!r}",
        where=config.file,
        next="declared tables: " + (", ".join(sorted(config.tables)) or "none"),
    )
