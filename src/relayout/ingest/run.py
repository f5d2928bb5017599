"""Giving units to Spark: one job per group, kernels inside its tasks, results back as they come."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from relayout.ingest.units import Unit
from relayout.kernels.ingest import IngestTask, TaskFile, failure_text, packed, read_rows, run_tasks, write_incoming
from relayout.kernels.write import Target
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
    constants that the kernel fills in by itself.
    """

    read_columns: tuple[tuple[str, str], ...]
    formats: Mapping[str, str]
    literals: tuple[tuple[str, str], ...]
    expressions: tuple[tuple[str, str], ...]
    target: Target
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What came of one unit: files by batch and content hashes by source path, or the reason of its failure.

    `left` are data files that were written for a unit that failed; `moved` says that planning anew may help.
    """

    unit: Unit
    files: Mapping[BatchKey, tuple[Mapping[str, Any], ...]]
    hashes: Mapping[str, str]
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
    """Results in the order in which groups end; a little more than the cores' worth is in flight.

    When whoever takes the results gives up, what is in flight is cancelled and waited for.
    """
    tag = f"relayout-{uuid.uuid4().hex}"
    cores = int(spark.sparkContext.defaultParallelism)
    most = max(2, cores) + 1
    waiting = list(enumerate(groups))

    def timed(number: int, group: Sequence[Unit]) -> GroupResult:
        begun = time.monotonic()
        spark.sparkContext.addJobTag(tag)
        units = run_group(spark, group, reading)
        return GroupResult(number, tuple(units), time.monotonic() - begun)

    with ThreadPoolExecutor(max_workers=most, thread_name_prefix="relayout-group") as pool:
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
        reason = _engine_failure(error)
        return [UnitResult(unit, {}, {}, reason, "since it was listed" in reason) for unit in group]
    by_unit: dict[int, list[dict[str, Any]]] = {}
    for result in results:
        by_unit.setdefault(owners[result["task"]], []).append(result)
    return [_joined(unit, by_unit.get(number, [])) for number, unit in enumerate(group)]


def _joined(unit: Unit, results: list[dict[str, Any]]) -> UnitResult:
    failed = [result for result in results if "error" in result]
    left = tuple(output["content"]["file-path"] for result in results for output in result.get("outputs", ()))
    if failed or len(results) != len(unit.parts):
        reason = failed[0]["error"] if failed else "Spark lost a part of this batch"
        return UnitResult(unit, {}, {}, reason, any(result.get("moved") for result in failed), left)
    files: dict[BatchKey, list[Mapping[str, Any]]] = {key: [] for key in unit.keys}
    hashes: dict[str, str] = {}
    for result in results:
        hashes |= result["hashes"]
        for output in result["outputs"]:
            key = BatchKey.from_json(output["batch"])
            if key not in files:
                reason = f"rows of batch {key} appeared since the sources were listed"
                return UnitResult(unit, {}, {}, reason, True, left)
            files[key].append(output["content"])
    return UnitResult(unit, {key: tuple(members) for key, members in files.items()}, hashes)


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
    )


def _typed(text: str | None, kind: str) -> Scalar:
    return None if text is None else from_text(text, kind)


def _run_in_spark(spark: SparkSession, tasks: list[IngestTask], reading: Reading) -> list[dict[str, Any]]:
    if reading.expressions:
        return _run_with_expressions(spark, tasks, reading)
    cores = int(spark.sparkContext.defaultParallelism)
    slices = min(len(tasks), cores * SLICES_PER_CORE) if len(tasks) > 1 else 1
    rows = spark.sparkContext.parallelize([(bytearray(task),) for task in packed(tasks)], slices)
    frame = spark.createDataFrame(rows, "task binary")
    return [json.loads(row.result) for row in frame.mapInArrow(run_tasks, "result string").collect()]


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
        f"cast({mapped.get(name, quote_spark(name))} as {spark_type(kinds[name])}) as {quote_spark(name)}"
        for name, _ in reading.target.columns
    ]
    results = frame.selectExpr(*select).mapInArrow(write_incoming(by_number), "result string").collect()
    return [json.loads(row.result) for row in results]


def _engine_failure(error: Exception) -> str:
    """The line of a Spark failure that says why; the rest is stack traces of three languages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in reversed(lines):
        if line.startswith(("relayout.", "_duckdb.", "duckdb.", "pyarrow.", "ValueError", "RuntimeError", "OSError")):
            return line.split(": ", 1)[-1]
    return failure_text(error)


def rewrite_from_table(spark: SparkSession, unit: Unit, rows_of: TableRows, reading: Reading, parts: int) -> UnitResult:
    """Lay the rows that a table holds of one batch out anew, read at exactly one snapshot."""
    held = set(rows_of.columns)
    select = [
        f"cast({quote_spark(name) if name in held else 'null'} as {spark_type(kind)}) as {quote_spark(name)}"
        for name, kind in reading.target.columns
    ]
    tasks = {number: _task(number, replace(unit, parts=((),)), (), reading) for number in range(parts)}
    try:
        frame = spark.read.option("versionAsOf", str(rows_of.snapshot_id)).table(rows_of.full_name)
        frame = frame.where(rows_of.condition).selectExpr(*select).coalesce(parts)
        results = [json.loads(row.result) for row in frame.mapInArrow(write_incoming(tasks), "result string").collect()]
    except Exception as error:  # noqa: BLE001
        # Spark raises whatever went wrong in three languages; one batch's failure is a value here.
        return UnitResult(unit, {}, {}, _engine_failure(error))
    return _joined(replace(unit, parts=((),) * len(results)), results)


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table at one snapshot; `condition` is Spark SQL, `columns` are those that the snapshot has."""

    full_name: str
    snapshot_id: int
    condition: str
    columns: tuple[str, ...]
