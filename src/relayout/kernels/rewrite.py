"""Groups of data files to better data files inside Spark tasks: read by field id, deletes applied, proven, written.

A result leaves a task only when the rows that went in, less the deleted ones, are the rows that came out, and so for
the nulls of every column that footers count.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.kernels.arrow_rewrite import is_small, rewritten_with_arrow
from relayout.kernels.delete_read import CannotRewrite
from relayout.kernels.engine import Engine, engine
from relayout.kernels.group_read import GroupColumns, ReadFile, Relation, column_in, relation_of
from relayout.kernels.ingest import failure_text
from relayout.kernels.order import Curve, Slice, cuts_of, rankers_of, register_key
from relayout.kernels.parquet_shapes import Shape, null_counts, shapes_of
from relayout.kernels.places import place_for
from relayout.kernels.proof import Before, NotProven, prove
from relayout.kernels.write import ROW_GROUP_ROWS, OutputFile, Target, withdrawn_on_failure, write_rows
from relayout.table.duckdb_text import SESSION_SETTINGS
from relayout.table.names import quote_duckdb
from relayout.table.rewrites import GroupFiles

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ROW_GROUPS_PER_FILE = 8

LEAST_ROW_GROUP = 2_048
"""DuckDB writes no smaller ones."""

Constants = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class GroupWork:
    """One group as a task gets it; `constants` belong to its data files, in their order.

    With a `stretch` the task writes only the rows on that stretch of the curve, and whoever joins the stretches proves
    them together.
    """

    number: int
    files: GroupFiles
    constants: tuple[Constants, ...]
    target: Target
    curve: Curve | None = None
    stretch: Slice | None = None


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Groups that one task rewrites one after the other, each with a result of its own."""

    groups: tuple[GroupWork, ...]
    columns: GroupColumns
    memory_bytes: int


def run_rewrites(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The whole journey of pickled tasks; one JSON document per group, failures included."""
    import pyarrow as pa

    for batch in batches:
        for packed in batch.column(0).to_pylist():
            for result in run_rewrite(pickle.loads(packed)):
                yield pa.RecordBatch.from_pydict({"result": [json.dumps(result)]})


def run_rewrite(task: RewriteTask) -> Iterator[dict[str, Any]]:
    """Outputs of each group, or the reason why there are none; footers of all groups are read together."""
    target = task.groups[0].target
    keeps_order = bool(target.order_by) or task.groups[0].curve is not None
    with engine(target.scratch, task.memory_bytes, keeps_order=keeps_order) as opened:
        try:
            files = _Footers(opened, task)
        except Exception as error:  # noqa: BLE001
            # A reason travels as a value, so that one bad file does not end the job that carries the others.
            if len(task.groups) == 1:
                yield {"group": task.groups[0].number, "error": failure_text(error)}
                return
            files = None
        for group in task.groups:
            if files is None:
                yield from run_rewrite(replace(task, groups=(group,)))
            else:
                yield _rewritten(opened, task, group, files)


def run_samples(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut groups into stretches of their curve: one pickled list of `Slice` per task, empty where that fails.

    A failure here is met again, and told, by whoever reads the group as a whole.
    """
    import pyarrow as pa

    for batch in batches:
        for packed in batch.column(0).to_pylist():
            task, parts = pickle.loads(packed)
            number = task.groups[0].number
            try:
                stretches = _stretches(task, parts)
            except Exception:  # noqa: BLE001
                stretches = []
            body = pickle.dumps(stretches)
            yield pa.RecordBatch.from_pydict({"number": pa.array([number], pa.int32()), "stretches": [body]})


def _stretches(task: RewriteTask, parts: int) -> list[Slice]:
    group = task.groups[0]
    if group.curve is None:
        return []
    with engine(group.target.scratch, task.memory_bytes, keeps_order=True) as opened:
        return _GroupRewrite(opened, task, group, _Footers(opened, task)).stretches(group.curve, parts)


def _rewritten(opened: Engine, task: RewriteTask, group: GroupWork, files: _Footers) -> dict[str, Any]:
    try:
        return {"group": group.number, **_GroupRewrite(opened, task, group, files).run()}
    except CannotRewrite as reason:
        return {"group": group.number, "cannot": str(reason)}
    except Exception as error:  # noqa: BLE001
        # As above: the failure of one group is a value.
        return {"group": group.number, "error": failure_text(error)}


class _Footers:
    """Local copies of a task's files; shapes, row and null counts of all of them once one is asked for."""

    def __init__(self, opened: Engine, task: RewriteTask) -> None:
        store = task.groups[0].target.store
        self._connection = opened.connection
        self._paths: list[str] = []
        self.local_of: dict[str, str] = {}
        self.shapes: dict[str, Shape] = {}
        self.rows: dict[str, int] = {}
        self.nulls: dict[tuple[str, str], int | None] = {}
        for group in task.groups:
            members = [file.path for file in group.files.data] + [file.path for file in group.files.deletes]
            for path in members:
                if path not in self.local_of:
                    place = opened.folder / f"fetched-{len(self.local_of)}"
                    self.local_of[path] = place_for(path, store).local_copy(path, str(place))
            if not is_small(group.files, group.target, task.columns, task.memory_bytes):
                self.wants(group.files)

    def wants(self, files: GroupFiles) -> None:
        """Have the footers of these files read with the next ones."""
        parquet = [file for file in files.data if file.content["file-format"] == "parquet"]
        self._paths += [self.local_of[file.path] for file in parquet]

    def read(self) -> None:
        """Read what is wanted and was not read yet."""
        if self._paths:
            self.shapes |= shapes_of(self._connection, self._paths)
            rows, nulls = null_counts(self._connection, self._paths)
            self.rows |= rows
            self.nulls |= nulls
            self._paths = []


class _GroupRewrite:
    """One group on a connection of its own to the task's engine, so that its temporary tables go with it."""

    def __init__(self, opened: Engine, task: RewriteTask, group: GroupWork, footers: _Footers) -> None:
        self.folder: Path = opened.folder
        self.connection: duckdb.DuckDBPyConnection = opened.connection.cursor()
        self.columns = task.columns
        self.memory_bytes = task.memory_bytes
        self.group = group
        self.footers = footers

    def run(self) -> dict[str, Any]:
        small = self._by_arrow()
        if small is not None:
            return small
        try:
            for setting in SESSION_SETTINGS:
                self.connection.execute(setting)
            read = self._files()
            relation = relation_of(self.connection, self.group.files, read, self.columns, self.footers.local_of)
            target = replace(self.group.target, scratch=str(self.folder), row_group_rows=_row_group_rows(self.group))
            outputs = self._write(relation, target)
            with withdrawn_on_failure(outputs, target):
                before = self._before(read, relation)
                contents = [output.content for output in outputs]
                if self.group.stretch is None:
                    prove(before, contents)
        finally:
            self.connection.close()
        stretch = self.group.stretch is not None
        return {"outputs": contents, "before": before.to_json(), "stretch": stretch}

    def stretches(self, curve: Curve, parts: int) -> list[Slice]:
        """About equally long stretches of the curve, told by this group's rows."""
        relation = relation_of(
            self.connection, self.group.files, self._files(), self.columns, self.footers.local_of
        ).kept
        rankers = rankers_of(self.connection, relation, curve)
        key = register_key(self.connection, curve, rankers)
        cuts = cuts_of(self.connection, relation, key, parts)
        return [Slice(rankers, lower, upper) for lower, upper in zip((None, *cuts), (*cuts, None), strict=True)]

    def _write(self, relation: Relation, target: Target) -> list[OutputFile]:
        curve = self.group.curve
        if curve is None:
            return write_rows(self.connection, relation.kept, target, {})
        stretch = self.group.stretch or Slice(rankers_of(self.connection, relation.kept, curve))
        key = register_key(self.connection, curve, stretch.rankers)
        order = target.order_by if curve.kind == "sort" else (key,)
        bounds = [f"{key} >= {stretch.lower}"] if stretch.lower is not None else []
        bounds += [f"{key} < {stretch.upper}"] if stretch.upper is not None else []
        rows = f"(SELECT * FROM {relation.kept} WHERE {' AND '.join(bounds)})" if bounds else relation.kept
        return write_rows(self.connection, rows, replace(target, order_by=order), {})

    def _by_arrow(self) -> dict[str, Any] | None:
        files, target = self.group.files, replace(self.group.target, scratch=str(self.folder))
        if self.group.curve is not None or not is_small(files, target, self.columns, self.memory_bytes):
            return None
        made = rewritten_with_arrow(files, target, self.columns, self.footers.local_of)
        if made is None:
            self.footers.wants(files)
            return None
        outputs, before = made
        contents = [output.content for output in outputs]
        with withdrawn_on_failure(outputs, target):
            prove(before, contents)
        return {"outputs": contents, "before": before.to_json(), "stretch": False}

    def _files(self) -> list[ReadFile]:
        self.footers.read()
        read = []
        for place, (file, constants) in enumerate(zip(self.group.files.data, self.group.constants, strict=True)):
            if file.content["file-format"] != "parquet":
                raise CannotRewrite(f"data files in {file.content['file-format']} are read by Spark")
            local = self.footers.local_of[file.path]
            if self.footers.rows[local] != file.rows:
                raise NotProven(f"{file.path} holds {self.footers.rows[local]} rows, its manifest says {file.rows}")
            read.append(ReadFile(place, file, local, self.footers.shapes[local], constants))
        return read

    def _before(self, read: Sequence[ReadFile], relation: Relation) -> Before:
        """What must come out of the group: rows and nulls that went in, less those that deletes take."""
        counted = self._nulls_before(read)
        lost_rows, lost_nulls = self._lost(relation, list(counted))
        rows = sum(file.planned.rows for file in read)
        nulls = {field_id: before - lost_nulls[field_id] for field_id, before in counted.items()}
        return Before(rows - lost_rows, lost_rows, nulls)

    def _nulls_before(self, read: Sequence[ReadFile]) -> dict[int, int]:
        """Nulls by field id, of the plain columns that every footer counts."""
        counted: dict[int, int] = {}
        for column in self.columns.wanted:
            if column.kind != "leaf":
                continue
            total: int | None = 0
            for file in read:
                nulls = self._nulls_in(file, column.field_id, column.default)
                total = None if nulls is None or total is None else total + nulls
            if total is not None:
                counted[column.field_id] = total
        return counted

    def _nulls_in(self, file: ReadFile, field_id: int, default: str) -> int | None:
        found = column_in(file.shape, self.columns, field_id)
        if found is not None:
            return self.footers.nulls.get((file.local, found.name))
        told = dict(file.constants).get(field_id) or default
        return 0 if told and not told.startswith("CAST(NULL ") else file.planned.rows

    def _lost(self, relation: Relation, field_ids: Sequence[int]) -> tuple[int, Mapping[int, int]]:
        """How many rows deletes take, and how many nulls of each of these columns are in them."""
        if not relation.deletes:
            return 0, dict.fromkeys(field_ids, 0)
        names = {column.field_id: quote_duckdb(column.name) for column in self.columns.wanted}
        items = ["count(*)", *(f"count({names[field_id]})" for field_id in field_ids)]
        counts = self.connection.execute(f"SELECT {', '.join(items)} FROM {relation.lost}").fetchone() or ()
        rows = int(counts[0])
        return rows, {field_id: rows - int(found) for field_id, found in zip(field_ids, counts[1:], strict=True)}


def _row_group_rows(group: GroupWork) -> int:
    """So few rows that several row groups go into a file of the target size."""
    rows = sum(file.rows for file in group.files.data)
    row_bytes = sum(file.size_bytes for file in group.files.data) / max(1, rows)
    wanted = int(group.target.target_file_bytes / ROW_GROUPS_PER_FILE / max(1.0, row_bytes))
    return max(LEAST_ROW_GROUP, min(ROW_GROUP_ROWS, wanted - wanted % LEAST_ROW_GROUP))


def packed(task: RewriteTask) -> bytearray:
    """The task as Spark carries it to a worker."""
    return bytearray(pickle.dumps(task))
