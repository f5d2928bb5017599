"""The table of routing counts: one line per alternate and run, only ever appended to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from relayout.config import Config
from relayout.config.model import ROUTING_TABLE
from relayout.errors import EngineError
from relayout.table.names import TableName
from relayout.table.routing_counts import RoutingCounts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = (
    "base_uuid string, layout string, considered bigint, matched bigint, used bigint, last_used_ms bigint, "
    "recorded_at_ms bigint"
)


def append_counts(spark: SparkSession, config: Config, counts: Sequence[RoutingCounts], at_ms: int) -> None:
    """Add the counts to the namespace's table, which is made now unless it is there."""
    name = TableName(tuple(config.namespace.split(".")), ROUTING_TABLE).spark_sql(config.catalog.name)
    try:
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {name} ({SCHEMA}) USING iceberg TBLPROPERTIES ('format-version' = '2', "
            "'write.distribution-mode' = 'none', 'commit.retry.num-retries' = '20', "
            "'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '20')"
        )
        rows = [(*astuple(count), at_ms) for count in counts]
        spark.createDataFrame(rows, SCHEMA).coalesce(1).writeTo(name).append()
    except Exception as error:
        raise EngineError(
            f"routing counts could not be written: {str(error).splitlines()[0]}",
            where=ROUTING_TABLE,
            next="nothing else is lost; they go on with the next query",
        ) from error
