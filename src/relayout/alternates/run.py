"""Laying rows of a base out for its alternates: one read, every layout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relayout.kernels.ingest import IngestTask, write_incoming
from relayout.kernels.outputs import LaidOut, laid_out
from relayout.kernels.write import Target
from relayout.spark.table_rows import TableRows, engine_failure, frame_of
from relayout.table.names import quote_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lay_out(
    spark: SparkSession, rows: TableRows, targets: Sequence[Target], memory_bytes: int, parts: int
) -> list[LaidOut]:
    """The rows for each target in turn, tagged by the first target's batch columns; a batch is in one part only."""
    first, *others = targets
    tasks = {
        number: IngestTask(number, (), (), (), {}, (), first, memory_bytes, tuple(others)) for number in range(parts)
    }
    frame = frame_of(spark, rows, first.columns)
    together = [quote_spark(name) for name, _ in first.batch_columns]
    frame = frame.repartition(parts, *together) if parts > 1 and together else frame.coalesce(parts)
    try:
        results = [json.loads(row.result) for row in frame.mapInArrow(write_incoming(tasks), "result string").collect()]
    except Exception as error:  # noqa: BLE001
        # Spark raises whatever went wrong in three languages; one layout's failure is a value here.
        return [LaidOut({}, engine_failure(error)) for _ in targets]
    told = [[result["outputs"] for result in results]]
    told += [[result["others"][number] for result in results] for number in range(len(others))]
    return [laid_out((), parts_of_one) for parts_of_one in told]
