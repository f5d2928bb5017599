"""The ledger as an Iceberg table: appended to in groups, never updated in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from relayout.commit.failpoints import passing
from relayout.config import Config
from relayout.config.model import LEDGER_TABLE
from relayout.errors import EngineError
from relayout.ledger.records import LEDGER_SCHEMA, PLAIN_COLUMNS, BatchRecord
from relayout.read.catalog import CatalogReader
from relayout.table.names import TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def ledger_name(config: Config) -> TableName:
    return TableName(tuple(config.namespace.split(".")), LEDGER_TABLE)


def has_ledger(config: Config) -> bool:
    """Whether the ledger, and with it the namespace, is there; costs no job of the engine."""
    return CatalogReader(config).load(ledger_name(config)) is not None


def ensure_ledger(spark: SparkSession, config: Config) -> None:
    """Create the ledger of the configured namespace unless it is there."""
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {ledger_name(config).spark_sql(config.catalog.name)} ({LEDGER_SCHEMA}) "
        "USING iceberg TBLPROPERTIES ('format-version' = '2', 'write.distribution-mode' = 'none', "
        "'commit.retry.num-retries' = '20', 'write.metadata.delete-after-commit.enabled' = 'true', "
        "'write.metadata.previous-versions-max' = '20')"
    )


def append_records(spark: SparkSession, config: Config, records: Sequence[BatchRecord]) -> None:
    """Add the records in one commit; the stamps of the tables repair what a crash before this line lost."""
    if not records:
        return
    passing("before-ledger")
    try:
        frame = spark.createDataFrame(_arrow_table(records)).coalesce(1)
        frame.writeTo(ledger_name(config).spark_sql(config.catalog.name)).append()
    except Exception as error:
        raise EngineError(
            f"{len(records)} lines of the ledger could not be written: {str(error).splitlines()[0]}",
            where=str(ledger_name(config)),
            next="run `relayout apply` again: what is loaded stays loaded, and its lines are written then",
        ) from error
    passing("after-ledger")


def _arrow_table(records: Sequence[BatchRecord]) -> pa.Table:
    import pyarrow as pa

    source = pa.struct(
        [
            ("path", pa.string()),
            ("size_bytes", pa.int64()),
            ("modified_ns", pa.int64()),
            ("changed_ns", pa.int64()),
            ("etag", pa.string()),
            ("content_hash", pa.string()),
            ("batches", pa.int32()),
        ]
    )
    kinds = {
        **dict.fromkeys(PLAIN_COLUMNS, pa.string()),
        **dict.fromkeys(
            ("snapshot_id", "previous_stamp", "sequence_number", "rows", "files", "size_bytes", "recorded_at_ms"),
            pa.int64(),
        ),
        "seconds": pa.float64(),
        "incremental_keys": pa.list_(pa.string()),
        "sources": pa.list_(source),
        "left_files": pa.list_(pa.string()),
    }
    return pa.Table.from_pylist([record.to_row() for record in records], schema=pa.schema(list(kinds.items())))
