"""What a batch and a table should stay below; the sizes of a batch are in `ingest.advice`, which warns about them."""

from __future__ import annotations

from relayout.commit.receipts import BatchReceipt, Outcome, TableReceipt
from relayout.ingest.plan import Action

BATCH_SECONDS_TARGET = 60
AMPLIFICATION_TARGET = 3
"""Bytes of a table's data files, in all its layouts, by the bytes of its source files."""


def loaded(table: TableReceipt) -> list[BatchReceipt]:
    """The batches that the targets are about: those loaded from sources in this run."""
    return [batch for batch in table.of(Outcome.DONE) if batch.action == Action.LOAD]
