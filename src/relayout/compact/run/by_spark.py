"""Groups that kernels cannot read: Spark's own reader applies what its format, types and deletes ask for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from relayout.compact.run.waves import GroupResult, HowToRewrite
from relayout.kernels.ingest import IngestTask, write_incoming
from relayout.kernels.proof import Before, NotProven, prove
from relayout.spark.table_rows import TableRows, engine_failure, frame_of
from relayout.table.scalars import sql_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rewrite_by_spark(
    spark: SparkSession, told: GroupResult, how: HowToRewrite, full_name: str, snapshot_id: int
) -> GroupResult:
    """The group that a kernel gave back, read by Spark at exactly the base snapshot and written as one task's work."""
    if how.curve is not None and how.curve.kind != "sort":
        return GroupResult(told.group, told.files, error=f"{told.cannot}; its rows cannot be laid along a curve")
    target = how.target_of(told.group, told.files.data[0])
    paths = ", ".join(sql_literal(file.path, "string", "spark") for file in told.files.data)
    rows = TableRows(full_name, snapshot_id, f"_file IN ({paths})", tuple(name for name, _ in target.columns))
    tasks = {0: IngestTask(0, (), (), (), {}, (), target, how.memory_bytes)}
    try:
        frame = frame_of(spark, rows, target.columns)
        live = frame.count()
        answers = frame.coalesce(1).mapInArrow(write_incoming(tasks), "result string").collect()
    except Exception as error:  # noqa: BLE001
        # Spark raises whatever went wrong in three languages; one group's failure is a value here.
        return GroupResult(told.group, told.files, error=engine_failure(error))
    outputs = tuple(output["content"] for row in answers for output in json.loads(row.result)["outputs"])
    deleted = sum(file.rows for file in told.files.data) - live
    try:
        prove(Before(live, deleted, {}), outputs)
    except NotProven as why:
        left = tuple(str(output["file-path"]) for output in outputs)
        return GroupResult(told.group, told.files, error=str(why), left=left)
    return GroupResult(told.group, told.files, outputs, live, deleted, engine="spark")
