"""Giving units to Spark: one job per group, kernels inside its tasks, results back as they come."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from relayout.ingest.units import Unit
from relayout.kernels.ingest import (
    IngestTask,
    TaskFile,
    incoming_name,
    packed,
    read_rows,
    run_tasks,
    write_incoming,
)
from relayout.kernels.outputs import FilesByBatch, LaidOut, by_batch, laid_out, paths_in
from relayout.kernels.write import Target
from relayout.spark.table_rows import TableRows, engine_failure, frame_of
from relayout.table.batches import BatchKey, Scalar
from relayout.table.names import quote_spark
from relayout.table.scalars import from_text
from relayout.table.sources import SourceFile
from relayout.table.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLICES_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class Reading:
    """How this table's sources are read and laid out; the same for every unit.

    `expressions` are Spark SQL by column name and make Spark compute between reading and writing; `literals` are
    constants that the kernel fills in by itself. `others` are targets, by the name of their table, that get the rows of
    each batch in the same task.
    """

    read_columns: tuple[tuple[str, str], ...]
    formats: Mapping[str, str]
    literals: tuple[tuple[str, str], ...]
    expressions: tuple[tuple[str, str], ...]
    target: Target
    memory_bytes: int
    others: Mapping[str, Target] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What came of one unit: files by batch and content hashes by source path, or the reason of its failure.

    `others` holds what was laid out for other tables, by their names. `left` are data files that were written for a
    unit that failed; `moved` says that planning anew may help.
    """

    unit: Unit
    files: FilesByBatch
    hashes: Mapping[str, str]
    others: Mapping[str, LaidOut] = field(default_factory=dict)
    error: str = ""
    moved: bool = False
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupResult:
    """All results of one group and how long Spark took for them."""

    number: int
    units: tuple[UnitResult, ...]
    seconds: float


def run_groups(
    spark: SparkSession, groups: Sequence[Sequence[Unit]], reading: Reading, stopping: threading.Event
) -> Generator[GroupResult]:
    """Results in the order in which groups end; one more than there are cores runs, so that none waits for the driver.

    As many again are handed in before results are taken, so that no core waits for a commit either. When whoever takes
    the results gives up, what is in flight is cancelled and waited for.
    """
    tag = f"relayout-{uuid.uuid4().hex}"
    at_once = max(2, int(spark.sparkContext.defaultParallelism)) + 1
    most = 2 * at_once
    waiting = list(enumerate(groups))

    def timed(number: int, group: Sequence[Unit]) -> GroupResult:
        begun = time.monotonic()
        spark.sparkContext.addJobTag(tag)
        units = run_group(spark, group, reading)
        return GroupResult(number, tuple(units), time.monotonic() - begun)

    with ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="relayout-group") as pool:
        running: set[Future[GroupResult]] = set()
        try:
            while (waiting and not stopping.is_set()) or running:
                while waiting and len(running) < most and not stopping.is_set():
                    number, group = waiting.pop(0)
                    running.add(pool.submit(timed, number, group))
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            spark.sparkContext.cancelJobsWithTag(tag)
            raise


def run_group(spark: SparkSession, group: Sequence[Unit], reading: Reading) -> list[UnitResult]:
    """Run all parts of all units of the group in one Spark job."""
    tasks: list[IngestTask] = []
    owners: list[int] = []
    for number, unit in enumerate(group):
        for part in unit.parts:
            tasks.append(_task(len(tasks), unit, part, reading))
            owners.append(number)
    try:
        results = _run_in_spark(spark, tasks, reading)
    except Exception as error:  # noqa: BLE001
        # Spark raises whatever went wrong in three languages; one group's failure is a value here.
        reason = engine_failure(error)
        return [UnitResult(unit, {}, {}, {}, reason, "since it was listed" in reason) for unit in group]
    by_unit: dict[int, list[dict[str, Any]]] = {}
    for result in results:
        by_unit.setdefault(owners[result["task"]], []).append(result)
    return [_joined(unit, by_unit.get(number, []), [*reading.others]) for number, unit in enumerate(group)]


def _joined(unit: Unit, results: list[dict[str, Any]], others: Sequence[str]) -> UnitResult:
    failed = [result for result in results if "error" in result]
    left = tuple(path for result in results for path in paths_in(result))
    if failed or len(results) != len(unit.parts):
        reason = failed[0]["error"] if failed else "Spark lost a part of this batch"
        return UnitResult(unit, {}, {}, {}, reason, any(result.get("moved") for result in failed), left)
    hashes = {path: digest for result in results for path, digest in result["hashes"].items()}
    files = by_batch(unit.keys, [output for result in results for output in result["outputs"]])
    strangers = files.keys() - set(unit.keys)
    if strangers:
        reason = f"rows of batch {min(strangers, key=BatchKey.sort_key)} appeared since the sources were listed"
        return UnitResult(unit, {}, {}, {}, reason, moved=True, left=left)
    also = {
        table: laid_out(
            unit.keys,
            [result["others"][number] for result in results],
            sum(result["seconds"][number] for result in results if result["seconds"]),
        )
        for number, table in enumerate(others)
    }
    return UnitResult(unit, files, hashes, also)


def _task(number: int, unit: Unit, part: Sequence[SourceFile], reading: Reading) -> IngestTask:
    kinds = dict(reading.read_columns)
    files = tuple(
        TaskFile(
            file,
            reading.formats[file.path],
            tuple((name, _typed(text, kinds[name])) for name, text in file.path_values if name in kinds),
        )
        for file in part
    )
    return IngestTask(
        number,
        files,
        reading.read_columns,
        reading.literals,
        unit.constants,
        unit.keys,
        reading.target,
        reading.memory_bytes,
        tuple(reading.others.values()),
    )


def _typed(text: str | None, kind: str) -> Scalar:
    return None if text is None else from_text(text, kind)


def _run_in_spark(spark: SparkSession, tasks: list[IngestTask], reading: Reading) -> list[dict[str, Any]]:
    if reading.expressions:
        return _run_with_expressions(spark, tasks, reading)
    # Plain tasks: a DataFrame of a handful of rows would take Spark longer to plan than to load a small batch.
    context = spark.sparkContext
    slices = max(1, min(len(tasks), context.defaultParallelism * SLICES_PER_CORE))
    return [json.loads(told) for told in context.parallelize(packed(tasks), slices).mapPartitions(run_tasks).collect()]


def _run_with_expressions(spark: SparkSession, tasks: list[IngestTask], reading: Reading) -> list[dict[str, Any]]:
    """Kernel reads, Spark computes the mapped columns, kernel writes: one stage, nothing is shuffled."""
    by_number = {task.number: task for task in tasks}
    source = [(name, kind) for name, kind in reading.read_columns]
    ddl = ", ".join(f"{quote_spark(name)} {spark_type(kind)}" for name, kind in source)
    rows = spark.sparkContext.parallelize([(task.number,) for task in tasks], len(tasks))
    frame = spark.createDataFrame(rows, "number int").mapInArrow(read_rows(by_number), ddl)
    mapped = dict(reading.expressions)
    kinds = dict(reading.target.columns)
    select = [
        f"cast({mapped.get(name, quote_spark(name))} as {spark_type(kinds[name])}) as {incoming_name(position)}"
        for position, (name, _) in enumerate(reading.target.columns)
    ]
    results = frame.selectExpr(*select).mapInArrow(write_incoming(by_number), "result string").collect()
    return [json.loads(row.result) for row in results]


def rewrite_from_table(spark: SparkSession, unit: Unit, rows_of: TableRows, reading: Reading, parts: int) -> UnitResult:
    """Lay the rows that a table holds of one batch out anew, read at exactly one snapshot."""
    tasks = {number: _task(number, replace(unit, parts=((),)), (), reading) for number in range(parts)}
    try:
        frame = frame_of(spark, rows_of, reading.target.columns).coalesce(parts)
        results = [json.loads(row.result) for row in frame.mapInArrow(write_incoming(tasks), "result string").collect()]
    except Exception as error:  # noqa: BLE001
        # Spark raises whatever went wrong in three languages; one batch's failure is a value here.
        return UnitResult(unit, {}, {}, error=engine_failure(error))
    return _joined(replace(unit, parts=((),) * len(results)), results, [*reading.others])
