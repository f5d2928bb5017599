"""From the counters in the JVM to the table that outlives it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from relayout.commit.routing_counts import append_counts
from relayout.config import Config
from relayout.errors import EngineError
from relayout.spark.jvm.routing import taken_counts
from relayout.table.routing_counts import RoutingCounts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


def keep_counts(spark: SparkSession, config: Config) -> None:
    """Write down what was counted since the last call; a failure costs these counts and nothing else."""
    counts = [RoutingCounts.from_told(told) for told in taken_counts(spark)]
    if not counts:
        return
    try:
        append_counts(spark, config, counts, time.time_ns() // 1_000_000)
    except EngineError as error:
        logger.warning("%s", error.what)
