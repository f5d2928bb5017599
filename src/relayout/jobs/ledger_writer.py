"""Ledger lines of a run: gathered, and appended in groups so that the ledger does not get a snapshot per batch."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from relayout.commit.ledger_table import append_records
from relayout.config import Config
from relayout.errors import EngineError
from relayout.jobs.progress import Level, Listener
from relayout.ledger.records import BatchRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_SECONDS = 30.0


class LedgerWriter:
    """Lines that could not be written are kept and go with the next group; the stamps say the same until then."""

    def __init__(self, spark: SparkSession, config: Config, listener: Listener) -> None:
        self._spark = spark
        self._config = config
        self._listener = listener
        self._waiting: list[BatchRecord] = []
        self._written_at = time.monotonic()

    def add(self, records: Iterable[BatchRecord]) -> None:
        """Take the lines, and write when the last time is long ago."""
        self._waiting += records
        if time.monotonic() - self._written_at > EVERY_SECONDS:
            self.try_to_write()

    def write(self) -> None:
        """Append what is waiting; raises EngineError when that cannot be done."""
        self._written_at = time.monotonic()
        append_records(self._spark, self._config, self._waiting)
        self._waiting = []

    def try_to_write(self) -> None:
        """The same for those who have other work that must go on."""
        try:
            self.write()
        except EngineError as problem:
            self._listener.line(Level.WARNING, problem.what)
