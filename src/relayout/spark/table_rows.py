"""Rows that a table holds at one snapshot, as Spark hands them to kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.kernels.ingest import failure_text, incoming_name
from relayout.table.names import quote_spark
from relayout.table.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table at one snapshot, in its columns of that time, or at present where there is none.

    `condition` is Spark SQL, `columns` are those that there are.
    """

    full_name: str
    snapshot_id: int | None
    condition: str
    columns: tuple[str, ...]


def frame_of(spark: SparkSession, rows: TableRows, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """The rows in these columns and types for `write_incoming`; a column that the snapshot lacks is null."""
    from relayout.spark.jvm.gateway import make_active

    held = set(rows.columns)
    select = [
        f"cast({quote_spark(name) if name in held else 'null'} as {spark_type(kind)}) as {incoming_name(position)}"
        for position, (name, kind) in enumerate(columns)
    ]
    if rows.snapshot_id is None:
        # A session of the user's may cache tables; Iceberg pins the snapshot of what is loaded here.
        make_active(spark)
        spark.catalog.refreshTable(rows.full_name)
        frame = spark.read.table(rows.full_name)
    else:
        frame = spark.read.option("versionAsOf", str(rows.snapshot_id)).table(rows.full_name)
    return frame.where(rows.condition).selectExpr(*select)


def engine_failure(error: Exception) -> str:
    """The line of a Spark failure that says why; the rest is stack traces of three languages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in reversed(lines):
        if line.startswith(("relayout.", "_duckdb.", "duckdb.", "pyarrow.", "ValueError", "RuntimeError", "OSError")):
            return line.split(": ", 1)[-1]
    return failure_text(error)
