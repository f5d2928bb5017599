"""What a statement changed in a base reaches the base's alternates right after it, batch by batch."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from relayout.commit.receipts import AlternateReceipt
from relayout.commit.statements import run_statement
from relayout.config import Config
from relayout.config.model import ALTERNATE_PREFIX, Table
from relayout.errors import RelayoutError
from relayout.jobs.alternates.keeper import Keeper, Run
from relayout.jobs.progress import Level, Listener
from relayout.kernels.ingest import failure_text
from relayout.read.catalog import CatalogReader
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAY_CHANGE = re.compile(
    r"\b(insert|merge|update|delete|truncate|call|execute|begin|alter|create|replace|load)\b", re.IGNORECASE
)
"""Words without which a statement changes no table; a query that holds one only costs a look at the heads."""


_LISTS_TABLES = re.compile(r"\s*show\s+tables\b", re.IGNORECASE)


def run_followed(spark: SparkSession, config: Config, text: str, listener: Listener) -> DataFrame:
    """Run a statement of the user's, and bring the alternates of every table that it changed up to it.

    The statement stands even where an alternate cannot follow: the base then answers for it, and the next run tries
    again.
    """
    if _LISTS_TABLES.match(text) and ALTERNATE_PREFIX not in text:
        return _without_alternates(run_statement(spark, config.catalog.name, config.namespace, text))
    before = _heads(config) if _MAY_CHANGE.search(text) else {}
    frame = run_statement(spark, config.catalog.name, config.namespace, text)
    if before:
        after = _heads(config)
        for name, head in before.items():
            if after.get(name) != head:
                follow(spark, config, config.tables[name], listener)
    return frame


def _without_alternates(listed: DataFrame) -> DataFrame:
    """Tables as a user knows them; who names the prefix in a pattern gets the others too."""
    from pyspark.sql import functions as f

    return listed.where(~f.startswith(f.col("tableName"), f.lit(ALTERNATE_PREFIX)))


def follow(spark: SparkSession, config: Config, declared: Table, listener: Listener) -> tuple[AlternateReceipt, ...]:
    """Bring the alternates that a table has up to its current snapshot; trouble is told and kept from the caller."""
    name = TableName(tuple(config.namespace.split(".")), declared.name)
    try:
        with Keeper(Run(spark, config, "", uuid.uuid4().hex, listener), name, declared) as keeper:
            keeper.prepare(make=False)
            return keeper.catch_up()
    except Exception as error:  # noqa: BLE001
        # What the caller did has happened, and an exception here would say that it has not.
        what = error.what if isinstance(error, RelayoutError) else failure_text(error)
        listener.line(Level.ERROR, f"Alternates of {declared.name} are behind until the next apply: {what}")
        return ()


def _heads(config: Config) -> Mapping[str, int | None]:
    """Current snapshots of the tables that have alternates by declaration."""
    reader = CatalogReader(config)
    heads: dict[str, int | None] = {}
    for name, table in config.tables.items():
        native = reader.load(TableName(tuple(config.namespace.split(".")), name)) if table.alternates else None
        if native is not None:
            heads[name] = native.metadata.current_snapshot_id
    return heads
