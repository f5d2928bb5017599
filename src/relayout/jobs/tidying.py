"""Before a table is worked on: the ledger is repaired from the stamps, and what came to nothing is taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.commit.left_files import delete_left_files, expired_left_files, unreferenced
from relayout.commit.scratch import dead_runs, files_of_run
from relayout.config import Config
from relayout.jobs.ledger_writer import LedgerWriter
from relayout.jobs.plan import TableWork
from relayout.jobs.record import files_left, now_ms, repaired
from relayout.ledger.records import BASE_LAYOUT
from relayout.read.catalog import CatalogReader
from relayout.read.ledger import LedgerReader
from relayout.spark.jvm.iceberg import JavaTable
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tidy(spark: SparkSession, config: Config, work: TableWork, ledger: LedgerWriter) -> None:
    """Write the lines that a run which died did not, note the files it left, delete those that were noted a day ago."""
    name = work.declared.name
    ledger.add(repaired(name, BASE_LAYOUT, work.state.unrecorded, work.batches, work.shared))
    sweep(spark, config, work.name, name, BASE_LAYOUT, ledger)


def sweep(spark: SparkSession, config: Config, table: TableName, owner: str, layout: str, ledger: LedgerWriter) -> None:
    """Files that runs left in the table which holds a layout of the declared table `owner`."""
    reader = CatalogReader(config)
    native = reader.load(table)
    if native is None:
        return
    place = JavaTable(spark, table.spark_sql(config.catalog.name)).data_location()
    with dead_runs(place) as run_ids:
        for run_id in run_ids:
            left = unreferenced(native, files_of_run(place, run_id))
            if left:
                ledger.add([files_left(owner, layout, run_id, left)])
        if run_ids:
            ledger.write()
    noted = LedgerReader(config, reader).records_with_left_files(owner)
    own = expired_left_files((record for record in noted if record.layout == layout), now_ms())
    delete_left_files(native, own, dict(config.catalog.properties))
