"""The ledger table read without a JVM."""

from __future__ import annotations

from collections.abc import Iterable

from relayout.config import Config
from relayout.config.model import LEDGER_TABLE
from relayout.ledger.records import PLAIN_COLUMNS, BatchRecord
from relayout.read.catalog import CatalogReader
from relayout.table.names import TableName


class LedgerReader:
    """Records of the configured namespace's ledger; source lists are only read for those who ask."""

    def __init__(self, config: Config, reader: CatalogReader) -> None:
        self._name = TableName(tuple(config.namespace.split(".")), LEDGER_TABLE)
        self._reader = reader

    def records(self, table_name: str) -> tuple[BatchRecord, ...]:
        """All records of a table, without their source lists."""
        return self._scan(table_name, (*PLAIN_COLUMNS, "incremental_keys"), ())

    def records_with_left_files(self, table_name: str) -> tuple[BatchRecord, ...]:
        """Records of what came to nothing, with the files that it left."""
        found = self._scan(table_name, (*PLAIN_COLUMNS, "left_files"), ())
        return tuple(record for record in found if record.left_files)

    def records_with_sources(self, table_name: str, snapshot_ids: Iterable[int]) -> tuple[BatchRecord, ...]:
        """The whole records of these commits."""
        return self._scan(table_name, ("*",), tuple(snapshot_ids))

    def _scan(self, table_name: str, fields: tuple[str, ...], snapshot_ids: tuple[int, ...]) -> tuple[BatchRecord, ...]:
        from pyiceberg.expressions import And, BooleanExpression, EqualTo, In, Reference
        from pyiceberg.expressions.literals import literal

        ledger = self._reader.load(self._name)
        if ledger is None or ledger.current_snapshot() is None:
            return ()
        wanted: BooleanExpression = EqualTo(term=Reference("table_name"), value=literal(table_name))
        if snapshot_ids:
            wanted = And(wanted, In(term=Reference("snapshot_id"), values={literal(number) for number in snapshot_ids}))
        rows = ledger.scan(row_filter=wanted, selected_fields=fields).to_arrow().to_pylist()
        return tuple(BatchRecord.from_row(row) for row in rows)
