"""The whole ledger in one pass, for those who look at all tables at once."""

from __future__ import annotations

from collections.abc import Mapping

from relayout.config import Config
from relayout.config.model import LEDGER_TABLE
from relayout.ledger.records import PLAIN_COLUMNS, BatchRecord
from relayout.read.catalog import CatalogReader
from relayout.table.names import TableName


def records_by_table(config: Config, reader: CatalogReader) -> Mapping[str, tuple[BatchRecord, ...]]:
    """All records of the configured namespace's ledger, without their lists, by the name of their table.

    A ledger has no partitions, so asking for each table by itself would go through its manifests each time.
    """
    ledger = reader.load(TableName(tuple(config.namespace.split(".")), LEDGER_TABLE))
    if ledger is None or ledger.current_snapshot() is None:
        return {}
    found: dict[str, list[BatchRecord]] = {}
    for row in ledger.scan(selected_fields=PLAIN_COLUMNS).to_arrow().to_pylist():
        found.setdefault(row["table_name"], []).append(BatchRecord.from_row(row))
    return {table: tuple(records) for table, records in found.items()}
