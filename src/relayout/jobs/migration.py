"""A table before and after its layout changed: files, rows and distinct keys, counted and not estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.commit.receipts import Migration
from relayout.config import Config
from relayout.jobs.plan import TableWork
from relayout.read.catalog import CatalogReader
from relayout.table.names import quote_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Census:
    """What a table holds at one snapshot; `keys` counts distinct values of `columns`."""

    columns: tuple[str, ...]
    files: int
    rows: int
    keys: int


def census_of(spark: SparkSession, config: Config, work: TableWork, columns: tuple[str, ...] | None = None) -> Census:
    """Count data files, rows, and distinct values of the given columns, or of those that either layout names."""
    native = CatalogReader(config).load(work.name)
    snapshot = native.current_snapshot() if native else None
    if native is None or snapshot is None:
        return Census(columns or (), 0, 0, 0)
    if columns is None:
        held = {field.name for field in native.schema().fields}
        before = work.facts.layout.columns if work.facts else ()
        columns = tuple(name for name in dict.fromkeys((*before, *work.layout.columns)) if name in held)
    key = f"struct({', '.join(quote_spark(name) for name in columns)})" if columns else "1"
    frame = spark.read.option("versionAsOf", str(snapshot.snapshot_id)).table(work.name.spark_sql(config.catalog.name))
    counted = frame.selectExpr("count(*) AS counted_rows", f"count(DISTINCT {key}) AS counted_keys").collect()[0]
    files = snapshot.summary["total-data-files"] if snapshot.summary else None
    return Census(columns, int(files or 0), int(counted.counted_rows), int(counted.counted_keys))


def migration_between(work: TableWork, before: Census, after: Census) -> Migration:
    return Migration(
        layout_before=work.plan.layout_before,
        layout_after=work.plan.layout,
        files_before=before.files,
        files_after=after.files,
        rows_before=before.rows,
        rows_after=after.rows,
        keys_before=before.keys,
        keys_after=after.keys,
    )
