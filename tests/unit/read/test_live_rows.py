"""Rows of batches are counted in files that mix them, whatever the type of the batch column."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from relayout.read.live_rows import rows_of_batches
from relayout.table.batches import BatchKey, Scalar

MIXED = {
    "text": ["a", "a", None, "b"],
    "day": [date(2020, 1, 1), date(2020, 1, 1), None, date(2020, 1, 2)],
    "at": [datetime.fromisoformat(f"2020-01-01T0{hour}:00:00") if hour else None for hour in (1, 1, 0, 2)],
    "ratio": [1.5, 1.5, None, float("nan")],
    "amount": [Decimal("1.20"), Decimal("1.20"), None, Decimal("0.00")],
    "odd. name": [1, 1, None, 2],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A file of four rows and one with the first of them again; no partitions."""
    folder = tmp_path_factory.mktemp("lake")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    rows = pa.table(MIXED)
    made = catalog.create_table("db.t", schema=rows.schema)
    made.append(rows)
    made.append(rows.slice(0, 1))
    return made


@pytest.mark.parametrize(
    ("column", "often", "once"),
    [
        ("text", "a", "b"),
        ("day", "2020-01-01", "2020-01-02"),
        ("at", "2020-01-01T01:00:00", "2020-01-01T02:00:00"),
        ("ratio", 1.5, "NaN"),
        ("amount", "1.20", "0.00"),
        ("odd. name", 1, 2),
    ],
)
def test_each_batch_has_its_rows(table: Table, column: str, often: Scalar, once: Scalar) -> None:
    keys = [BatchKey(((column, value),)) for value in (often, once, None)]
    assert rows_of_batches(table, keys) == dict(zip(keys, (3, 1, 1), strict=True))


def test_the_whole_table_is_a_batch_too(table: Table) -> None:
    assert rows_of_batches(table, [BatchKey()]) == {BatchKey(): 5}
    absent, joint = (BatchKey((("text", text), ("odd. name", 1))) for text in ("b", "a"))
    assert rows_of_batches(table, [absent, joint]) == {absent: 0, joint: 3}
