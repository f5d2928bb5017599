"""Lakes for the sides: an own warehouse each, one Spark context for all, so that no side is warmer than another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import relayout
from relayout.api import Lake

NAMESPACE = "bench"
SPARK: Mapping[str, str] = {"master": "local[*]", "driver_memory": "10g", "task_memory": "1g"}
"""With 4g Spark's own writer runs out of memory over 3,200 partitions; ours needs none of the difference."""


def lake_in(folder: Path, tables: Mapping[str, Any], spark: Mapping[str, str] = SPARK) -> Lake:
    """A lake with an empty warehouse whose session already runs."""
    lake = resting_lake_in(folder, tables, spark)
    assert lake.spark.version
    return lake


def resting_lake_in(folder: Path, tables: Mapping[str, Any], spark: Mapping[str, str] = SPARK) -> Lake:
    """The same lake without a session yet."""
    told = {"warehouse": str(folder / "lake"), "namespace": NAMESPACE, "spark": dict(spark), "tables": dict(tables)}
    return relayout.open(told)
