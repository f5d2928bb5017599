"""What must go when a batch is replaced: whole files where all rows are the batch's, positions where files mix."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.config import Config
from relayout.errors import PlanRefused
from relayout.kernels.deletes import DeleteTarget, delete_file
from relayout.read.live_files import BatchFiles, LiveFile
from relayout.spark.jvm.iceberg import JavaTable
from relayout.table.batches import BatchKey
from relayout.table.facts import TableFacts
from relayout.table.names import quote_spark
from relayout.table.types import sql_literal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Removal:
    """Files for the removing half of a row delta."""

    removed_rows: tuple[Mapping[str, Any], ...] = ()
    removed_deletes: tuple[Mapping[str, Any], ...] = ()
    added_deletes: tuple[Mapping[str, Any], ...] = ()


def removal_of(
    spark: SparkSession, config: Config, facts: TableFacts, affected: BatchFiles, keys: Sequence[BatchKey], run_id: str
) -> Removal:
    """Take these batches out of the snapshot that `facts` describe.

    Deletes that are for one removed file go with it; others stay, they can do no harm.
    """
    gone = [live.content for live in affected.whole]
    obsolete = [delete for live in affected.whole for delete in live.deletes]
    if not affected.mixed:
        return Removal(tuple(gone), tuple(obsolete))
    if facts.format_version < 2:
        raise PlanRefused(
            f"files of {facts.name} hold rows of several batches, and format version 1 has no row deletes",
            where=str(facts.name),
            next="ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2'), then apply again",
        )
    added = _delete_files(spark, config, facts, affected.mixed, keys, run_id)
    if facts.format_version >= 3:
        touched = {str(file["referenced-data-file"]) for file in added}
        obsolete += [delete for live in affected.mixed if live.path in touched for delete in live.deletes]
    return Removal(tuple(gone), tuple(obsolete), tuple(added))


def _delete_files(
    spark: SparkSession,
    config: Config,
    facts: TableFacts,
    mixed: Sequence[LiveFile],
    keys: Sequence[BatchKey],
    run_id: str,
) -> list[Mapping[str, Any]]:
    """Find the positions in Spark, at exactly the snapshot of the facts, and write one delete file per data file."""
    from pyspark.sql import functions as f

    full_name = facts.name.spark_sql(config.catalog.name)
    target = DeleteTarget(
        facts.format_version,
        JavaTable(spark, full_name).data_location(),
        run_id,
        {live.path: live.content for live in mixed},
        dict(config.catalog.properties),
    )
    matches = batch_predicate(keys, facts)
    rows = (
        spark.read.option("versionAsOf", str(facts.current_snapshot_id))
        .table(full_name)
        .select("_file", "_pos", f.expr(matches).alias("matches"))
        .where(f.col("_file").isin(list(target.data_files)))
    )
    if facts.format_version < 3:
        rows = rows.where("matches")

    def write(positions: pa.Table) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pc.any(positions.column("matches")).as_py():
            return pa.table({"result": pa.array([], pa.string())})
        return pa.table({"result": [json.dumps(delete_file(positions, target))]})

    written = rows.groupBy("_file").applyInArrow(write, "result string").collect()
    return [json.loads(row.result) for row in written]


def batch_predicate(keys: Sequence[BatchKey], facts: TableFacts) -> str:
    """The rows of these batches as a Spark SQL condition that is never null."""
    alternatives = []
    for key in keys:
        tests = [
            f"{quote_spark(name)} <=> {sql_literal(value, facts.type_of(name), 'spark')}" for name, value in key.items
        ]
        alternatives.append("(" + (" AND ".join(tests) or "true") + ")")
    return " OR ".join(alternatives)
