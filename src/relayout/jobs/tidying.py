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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tidy(spark: SparkSession, config: Config, work: TableWork, ledger: LedgerWriter) -> None:
    """Write the lines that a run which died did not, note the files it left, delete those that were noted a day ago."""
    name = work.declared.name
    ledger.add(repaired(name, BASE_LAYOUT, work.state.unrecorded, work.batches, work.shared))
    reader = CatalogReader(config)
    native = reader.load(work.name)
    if native is None:
        return
    place = JavaTable(spark, work.name.spark_sql(config.catalog.name)).data_location()
    with dead_runs(place) as run_ids:
        for run_id in run_ids:
            note_left_files(config, work, place, run_id, ledger)
        if run_ids:
            ledger.write()
    noted = expired_left_files(LedgerReader(config, reader).records_with_left_files(name), now_ms())
    delete_left_files(native, noted, dict(config.catalog.properties))


def note_left_files(config: Config, work: TableWork, place: str, run_id: str, ledger: LedgerWriter) -> None:
    """Tell the ledger of files that carry a run's id and that no snapshot refers to."""
    written = files_of_run(place, run_id)
    native = CatalogReader(config).load(work.name)
    left = unreferenced(native, written) if native is not None else set()
    if left:
        ledger.add([files_left(work.declared.name, BASE_LAYOUT, run_id, left)])
