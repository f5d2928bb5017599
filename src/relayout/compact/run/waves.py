"""Giving groups to Spark: many small ones to a task, a large one to several, all in one job; results by group."""

from __future__ import annotations

import heapq
import json
import pickle
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from relayout.compact.members import files_of
from relayout.compact.plan import FileGroup
from relayout.kernels.group_read import GroupColumns
from relayout.kernels.ingest import failure_text
from relayout.kernels.order import Curve, Slice
from relayout.kernels.proof import Before, NotProven, prove
from relayout.kernels.rewrite import Constants, GroupWork, RewriteTask, packed, run_rewrites, run_samples
from relayout.table.rewrites import GroupFiles, PlannedFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from relayout.kernels.write import Target

TASKS_PER_CORE = 4
OPENING_COSTS_BYTES = 256 << 10
"""What opening one more file costs, counted as bytes that could have been read meanwhile."""

MOST_STRETCHES = 4
"""Every stretch of a curve is a task that reads the whole group, so more of them would read more than they share."""

SAMPLED_FILES = 64

WAVE_BYTES = 16 << 30
"""What is rewritten before it is committed: a run that dies loses no more than this."""


@dataclass(frozen=True, slots=True)
class HowToRewrite:
    """What all groups of a run share; the target of a group depends on its partition spec and its partition."""

    columns: GroupColumns
    target_of: Callable[[FileGroup, PlannedFile], Target]
    constants_of: Callable[[PlannedFile], Constants]
    curve: Curve | None
    memory_bytes: int
    splits: bool


@dataclass(frozen=True, slots=True)
class GroupResult:
    """New files of a group, or why there are none: `cannot` asks for Spark's own reader, `error` is a failure.

    `left` are files that were written for a group that came to nothing.
    """

    group: FileGroup
    files: GroupFiles
    outputs: tuple[Mapping[str, Any], ...] = ()
    rows: int = 0
    deleted: int = 0
    error: str = ""
    cannot: str = ""
    left: tuple[str, ...] = ()
    engine: str = "kernel"


def waves_of(groups: Sequence[FileGroup]) -> Iterator[tuple[FileGroup, ...]]:
    """Groups in their order, cut where enough bytes are together for a commit."""
    wave: list[FileGroup] = []
    size = 0
    for group in groups:
        if wave and size + group.input_bytes > WAVE_BYTES:
            yield tuple(wave)
            wave, size = [], 0
        wave.append(group)
        size += group.input_bytes
    if wave:
        yield tuple(wave)


def rewrite_wave(spark: SparkSession, groups: Sequence[FileGroup], how: HowToRewrite) -> list[GroupResult]:
    """Rewrite all groups in one Spark job; a curve over a large group takes a first, short one to sample it."""
    members = [files_of(group) for group in groups]
    wholes = [
        GroupWork(number, files, _constants(files, how), how.target_of(group, files.data[0]), how.curve)
        for number, (group, files) in enumerate(zip(groups, members, strict=True))
    ]
    works: list[GroupWork] = []
    owners: list[int] = []
    try:
        for whole, part in _parts(spark, wholes, groups, how):
            works.append(replace(part, number=len(works)))
            owners.append(whole)
        by_group: dict[int, list[dict[str, Any]]] = {}
        for result in _in_spark(spark, works, how):
            by_group.setdefault(owners[result["group"]], []).append(result)
    except Exception as error:  # noqa: BLE001
        # Spark raises whatever went wrong in three languages; a wave's failure is a value here.
        return [
            GroupResult(group, files, error=failure_text(error)) for group, files in zip(groups, members, strict=True)
        ]
    parts = Counter(owners)
    return [
        _joined(group, files, by_group.get(number, []), parts[number])
        for number, (group, files) in enumerate(zip(groups, members, strict=True))
    ]


def _constants(files: GroupFiles, how: HowToRewrite) -> tuple[Constants, ...]:
    return tuple(how.constants_of(file) for file in files.data)


def _parts(
    spark: SparkSession, wholes: Sequence[GroupWork], groups: Sequence[FileGroup], how: HowToRewrite
) -> Iterator[tuple[int, GroupWork]]:
    """What single tasks do of each group: some of its files, a stretch of its curve, or all of it."""
    if how.curve is not None:
        yield from _stretched(spark, wholes, groups, how)
        return
    for whole, group in zip(wholes, groups, strict=True):
        for part in parts_of(whole.files, group.expected_output_files if how.splits else 1):
            yield whole.number, replace(whole, files=part, constants=_constants(part, how))


def _stretched(
    spark: SparkSession, wholes: Sequence[GroupWork], groups: Sequence[FileGroup], how: HowToRewrite
) -> Iterator[tuple[int, GroupWork]]:
    cores = int(spark.sparkContext.defaultParallelism)
    most = min(cores, MOST_STRETCHES) if how.splits else 1
    wanted = {whole.number: min(most, group.expected_output_files) for whole, group in zip(wholes, groups, strict=True)}
    asked = []
    for whole in wholes:
        if wanted[whole.number] > 1:
            sample = _with_deletes(whole.files, whole.files.data[:: -(-len(whole.files.data) // SAMPLED_FILES)])
            work = replace(whole, files=sample, constants=_constants(sample, how))
            asked.append((RewriteTask((work,), how.columns, how.memory_bytes), wanted[whole.number]))
    found: dict[int, list[Slice]] = {}
    if asked:
        rows = spark.sparkContext.parallelize([(bytearray(pickle.dumps(one)),) for one in asked], len(asked))
        frame = spark.createDataFrame(rows, "task binary")
        told = frame.mapInArrow(run_samples, "number int, stretches binary").collect()
        found = {row.number: pickle.loads(row.stretches) for row in told}
    for whole in wholes:
        stretches: list[Slice] = found.get(whole.number, [])
        for stretch in stretches:
            yield whole.number, replace(whole, stretch=stretch)
        if not stretches:
            yield whole.number, whole


def parts_of(files: GroupFiles, parts: int) -> Iterator[GroupFiles]:
    """At most so many parts of about equal size, each with the deletes that concern it; order is kept."""
    total = sum(file.size_bytes for file in files.data)
    share = total / max(1, parts)
    part: list[PlannedFile] = []
    taken = 0
    cut = 1
    for file in files.data:
        part.append(file)
        taken += file.size_bytes
        if taken >= share * cut - 1 and cut < parts:
            yield _with_deletes(files, part)
            part = []
            cut = int(taken // share) + 1 if share else parts
    if part:
        yield _with_deletes(files, part)


def _with_deletes(files: GroupFiles, data: Sequence[PlannedFile]) -> GroupFiles:
    kept = sorted({place for file in data for place in file.deletes})
    moved = {place: number for number, place in enumerate(kept)}
    members = tuple(replace(file, deletes=tuple(moved[place] for place in file.deletes)) for file in data)
    return GroupFiles(members, tuple(files.deletes[place] for place in kept))


def tasks_of(works: Sequence[GroupWork], how: HowToRewrite, most: int) -> list[RewriteTask]:
    """Groups dealt out so that tasks take about equally long; the largest come first."""
    costs = {work.number: _cost(work) for work in works}
    count = min(len(works), most)
    heap = [(0, number) for number in range(count)]
    hands: list[list[GroupWork]] = [[] for _ in range(count)]
    for work in sorted(works, key=lambda work: -costs[work.number]):
        load, number = heapq.heappop(heap)
        hands[number].append(work)
        heapq.heappush(heap, (load + costs[work.number], number))
    return [RewriteTask(tuple(hand), how.columns, how.memory_bytes) for hand in hands]


def _cost(work: GroupWork) -> int:
    files = len(work.files.data) + len(work.files.deletes)
    return sum(file.size_bytes for file in work.files.data) + (files + 1) * OPENING_COSTS_BYTES


def _in_spark(spark: SparkSession, works: Sequence[GroupWork], how: HowToRewrite) -> list[dict[str, Any]]:
    cores = int(spark.sparkContext.defaultParallelism)
    tasks = tasks_of(works, how, cores * TASKS_PER_CORE)
    tag = f"relayout-{uuid.uuid4().hex}"
    rows = spark.sparkContext.parallelize([(packed(task),) for task in tasks], len(tasks))
    frame = spark.createDataFrame(rows, "task binary").mapInArrow(run_rewrites, "result string")
    spark.sparkContext.addJobTag(tag)
    try:
        return [json.loads(row.result) for row in frame.collect()]
    except BaseException:
        spark.sparkContext.cancelJobsWithTag(tag)
        raise
    finally:
        spark.sparkContext.removeJobTag(tag)


def _joined(group: FileGroup, files: GroupFiles, results: Sequence[Mapping[str, Any]], parts: int) -> GroupResult:
    outputs = tuple(output for result in results for output in result.get("outputs", ()))
    if len(results) == parts and not any("error" in result or "cannot" in result for result in results):
        # Each stretch of a curve was told from all rows of the group, a part of its files from its own alone.
        befores = [Before.from_json(result["before"]) for result in results]
        if any(result["stretch"] for result in results):
            befores = befores[:1]
            try:
                prove(befores[0], outputs)
            except NotProven as why:
                return GroupResult(group, files, error=str(why), left=_paths(outputs))
        rows, deleted = sum(before.rows for before in befores), sum(before.deleted for before in befores)
        return GroupResult(group, files, outputs, rows, deleted)
    cannot = next((str(result["cannot"]) for result in results if "cannot" in result), "")
    error = next((str(result["error"]) for result in results if "error" in result), "")
    if not (error or cannot):
        error = "Spark lost a part of this group"
    return GroupResult(group, files, error=error, cannot="" if error else cannot, left=_paths(outputs))


def _paths(outputs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(str(output["file-path"]) for output in outputs)
