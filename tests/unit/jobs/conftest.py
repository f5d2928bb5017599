"""A lake as ingestions would have left it, written by PyIceberg so that no engine has to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField

from relayout.commit.ledger_table import _arrow_table
from relayout.config import from_mapping
from relayout.config.model import LEDGER_TABLE
from relayout.ledger.records import BASE_LAYOUT, BatchRecord, BatchStamp, State, stamp_summary
from relayout.read.catalog import CatalogReader
from relayout.read.ledger import LedgerReader
from relayout.table.batches import BatchKey, Scalar
from relayout.table.types import iceberg_type

INCOME = {"source": "in/*_{year}.json", "partitions": {"keys": [{"name": "year", "type": "INTEGER"}]}}
INCOME_COLUMNS = {"geo_fips": "string", "value": "long", "year": "int"}


class StampedLake:
    """Tables with stamps, a ledger with lines; each step is told apart so that tests can leave one out."""

    def __init__(self, folder: Path, tables: Mapping[str, Any]) -> None:
        self.folder = folder
        self.config = from_mapping({"namespace": "econ", "tables": dict(tables)}, folder)
        warehouse = Path(self.config.warehouse)
        warehouse.mkdir()
        self._catalog = SqlCatalog("lake", uri=f"sqlite:///{warehouse / 'catalog.db'}", warehouse=str(warehouse))
        self._catalog.create_namespace("econ")
        self._catalog.create_table(f"econ.{LEDGER_TABLE}", _arrow_table([]).schema)
        self._clock_ms = 1_700_000_000_000

    def create(
        self,
        table: str,
        columns: Mapping[str, str] = INCOME_COLUMNS,
        keys: Sequence[str] = ("year",),
        *,
        namespace: str = "econ",
        **properties: str,
    ) -> Table:
        self._catalog.create_namespace_if_not_exists(namespace)
        fields = [
            NestedField(number, name, iceberg_type(kind), required=False)
            for number, (name, kind) in enumerate(columns.items(), 1)
        ]
        ids = {field.name: field.field_id for field in fields}
        levels = [
            PartitionField(ids[name], 1000 + number, IdentityTransform(), name) for number, name in enumerate(keys)
        ]
        return self._catalog.create_table(
            f"{namespace}.{table}", Schema(*fields), partition_spec=PartitionSpec(*levels), properties=properties
        )

    def table(self, name: str) -> Table:
        return self._catalog.load_table(f"econ.{name}")

    def append(self, table: str, *rows: Mapping[str, Scalar], **summary: str) -> int:
        """Rows in one snapshot; without a summary somebody else wrote them."""
        native = self.table(table)
        native.append(pa.Table.from_pylist(rows, schema=native.schema().as_arrow()), snapshot_properties=summary)
        return self.snapshot_id(table)

    def load(self, table: str, key: Mapping[str, Scalar], rows: int = 3, *, recorded: bool = True) -> int:
        """A batch as an ingestion commits it: rows, stamp and, unless the run died before it, a ledger line."""
        batch = BatchKey(tuple(key.items()))
        stamp = BatchStamp(batch, f"sources of {batch}", "0f-1a", rows, 1, 1_000)
        data = [{"geo_fips": f"{number:05d}", "value": number, **key} for number in range(rows)]
        names = self.table(table).schema().column_names
        told = [{name: row.get(name) for name in names} for row in data]
        snapshot_id = self.append(table, *told, **stamp_summary("plan", "run", BASE_LAYOUT, [stamp], None))
        if recorded:
            self.record(self.line(table, key, State.DONE, snapshot_id=snapshot_id, rows=rows, files=1))
        return snapshot_id

    def line(self, table: str, key: Mapping[str, Scalar], state: State, **told: Any) -> BatchRecord:
        """A ledger line, each one second younger than the one before."""
        self._clock_ms += 1000
        batch = BatchKey(tuple(key.items()))
        plain: dict[str, Any] = {
            "table_name": table,
            "layout": BASE_LAYOUT,
            "batch": batch,
            "state": state,
            "fingerprint": f"sources of {batch}",
            "schema_hash": "0f-1a",
            "snapshot_id": None,
            "previous_stamp": None,
            "sequence_number": 0,
            "plan_id": "plan",
            "run_id": "run",
            "rows": 0,
            "files": 0,
            "size_bytes": 0,
            "seconds": 0.0,
            "error": "",
            "recorded_at_ms": self._clock_ms,
        }
        return BatchRecord(**(plain | told))

    def record(self, *records: BatchRecord) -> None:
        self.table(LEDGER_TABLE).append(_arrow_table(records))

    def records(self, table: str) -> tuple[BatchRecord, ...]:
        return LedgerReader(self.config, CatalogReader(self.config)).records(table)

    def snapshot_id(self, table: str) -> int:
        snapshot = self.table(table).current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def metadata_file(self, table: str) -> Path:
        return Path(self.table(table).metadata_location.removeprefix("file://"))


MakeLake = Callable[..., StampedLake]


@pytest.fixture
def make_lake(tmp_path: Path) -> MakeLake:
    """A fresh lake with the declared tables given by name; `income` by default."""

    def make(**tables: Any) -> StampedLake:
        return StampedLake(tmp_path, tables or {"income": INCOME})

    return make
