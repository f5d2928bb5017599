"""Creating and changing tables: namespaces, schemas, specs; each change is one metadata commit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from relayout.config import Config
from relayout.errors import CommitConflict, EngineError, EnvironmentProblem
from relayout.read.catalog import embedded_catalog_file
from relayout.spark.jvm.gateway import JavaFailure
from relayout.spark.jvm.iceberg import JavaTable
from relayout.table.facts import MANAGED
from relayout.table.layouts import Layout, PartitionField
from relayout.table.names import TableName, quote_spark
from relayout.table.schemas import TableSchema
from relayout.table.types import iceberg_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG_WAIT_SECONDS = 60


def prepare_embedded_catalog(config: Config) -> None:
    """Make the embedded catalog's file; its log lets readers go on while somebody commits."""
    file = embedded_catalog_file(config)
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + CATALOG_WAIT_SECONDS
    connection = sqlite3.connect(file, timeout=CATALOG_WAIT_SECONDS)
    try:
        while not _log_asked_for(connection):
            if time.monotonic() > deadline:
                raise EnvironmentProblem(
                    "the catalog cannot be prepared: another process holds it",
                    where=str(file),
                    next="end the process that has this file open, then run the same command again",
                )
            time.sleep(0.1)
    finally:
        connection.close()


def _log_asked_for(connection: sqlite3.Connection) -> bool:
    """Turn the log on; while two runs do that together, SQLite refuses one of them at once and without waiting."""
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False
    return True


def create_namespace(spark: SparkSession, config: Config) -> None:
    name = ".".join(quote_spark(part) for part in (config.catalog.name, *config.namespace.split(".")))
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name}")


def create_table(
    spark: SparkSession,
    config: Config,
    name: TableName,
    schema: TableSchema,
    layout: Layout,
    exact_columns: Sequence[str],
    properties: Mapping[str, str],
) -> None:
    """Create the table unless somebody else just did; bounds of `exact_columns` are kept whole in its metadata."""
    columns = ", ".join(f"{quote_spark(column.name)} {spark_type(column.type)}" for column in schema)
    told = {
        "format-version": str(config.defaults.format_version),
        "write.target-file-size-bytes": str(config.defaults.target_file_mb << 20),
        "write.parquet.compression-codec": "zstd",
        MANAGED: "true",
        **{f"write.metadata.metrics.column.{column}": "full" for column in exact_columns},
        **properties,
    }
    text = ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in told.items())
    partitioned = ", ".join(_spark_transform(field) for field in layout.partition)
    full_name = name.spark_sql(config.catalog.name)
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {full_name} ({columns}) USING iceberg"
        + (f" PARTITIONED BY ({partitioned})" if partitioned else "")
        + f" TBLPROPERTIES ({text})"
    )
    if layout.sort:
        set_sort(spark, config, name, layout)


def set_sort(spark: SparkSession, config: Config, name: TableName, layout: Layout) -> None:
    full_name = name.spark_sql(config.catalog.name)
    order = ", ".join(
        f"{quote_spark(field.column)} {'DESC' if field.descending else 'ASC'} "
        f"NULLS {'FIRST' if field.nulls_first else 'LAST'}"
        for field in layout.sort
    )
    spark.sql(f"ALTER TABLE {full_name} WRITE " + (f"LOCALLY ORDERED BY {order}" if order else "UNORDERED"))


def evolve_schema(spark: SparkSession, config: Config, name: TableName, schema: TableSchema) -> None:
    """Add the columns that are missing and widen what is narrower, matched by name."""
    from pyiceberg.schema import Schema, assign_fresh_schema_ids
    from pyiceberg.types import NestedField

    wanted = assign_fresh_schema_ids(
        Schema(
            *(
                NestedField(number, column.name, iceberg_type(column.type), required=False)
                for number, column in enumerate(schema, 1)
            )
        )
    )
    _changed(lambda: _table(spark, config, name).commit_schema_union(wanted.model_dump_json()), name)


def change_layout(spark: SparkSession, config: Config, name: TableName, layout: Layout) -> None:
    """New files follow the layout from now on; files that are there stay as they are and stay readable."""
    pairs = [(field.column, field.transform) for field in layout.partition]
    _changed(lambda: _table(spark, config, name).commit_spec(pairs), name)
    set_sort(spark, config, name, layout)


def roll_back_table(spark: SparkSession, config: Config, name: TableName, snapshot_id: int) -> None:
    """Make an ancestor of the current snapshot the current one."""
    _changed(lambda: _table(spark, config, name).commit_rollback(snapshot_id), name)


def set_properties(spark: SparkSession, config: Config, name: TableName, properties: Mapping[str, str]) -> None:
    text = ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in properties.items())
    spark.sql(f"ALTER TABLE {name.spark_sql(config.catalog.name)} SET TBLPROPERTIES ({text})")


def drop_table(spark: SparkSession, config: Config, name: TableName) -> None:
    """Drop the table and its files; the caller has asked."""
    spark.sql(f"DROP TABLE IF EXISTS {name.spark_sql(config.catalog.name)} PURGE")


def _table(spark: SparkSession, config: Config, name: TableName) -> JavaTable:
    return JavaTable(spark, name.spark_sql(config.catalog.name))


def _changed(change: Callable[[], None], name: TableName) -> None:
    try:
        change()
    except JavaFailure as failure:
        if failure.is_a("CommitFailedException"):
            raise CommitConflict(
                f"{name} was changed by somebody else at the same moment", next="run the same command again"
            ) from failure
        raise EngineError(f"{name} could not be changed: {failure}", where=str(name)) from failure


def _spark_transform(field: PartitionField) -> str:
    column = quote_spark(field.column)
    name, _, argument = field.transform.rstrip("]").partition("[")
    match name:
        case "identity":
            return column
        case "bucket" | "truncate":
            return f"{name}({argument}, {column})"
        case _:
            return f"{name}s({column})"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
