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

from relayout.kernels.delete_read import CannotRewrite
from relayout.kernels.engine import Engine, engine
from relayout.kernels.group_read import GroupColumns, ReadFile, Relation, relation_of
from relayout.kernels.ingest import failure_text
from relayout.kernels.parquet_shapes import Shape, null_counts, shapes_of
from relayout.kernels.places import place_for
from relayout.kernels.write import OutputFile, Target, withdrawn_on_failure, write_rows
from relayout.table.duckdb_text import SESSION_SETTINGS
from relayout.table.names import quote_duckdb
from relayout.table.rewrites import GroupFiles

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Constants = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class GroupWork:
    """One group as a task gets it; `constants` belong to its data files, in their order."""

    number: int
    files: GroupFiles
    constants: tuple[Constants, ...]
    target: Target


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Groups that one task rewrites one after the other, each with a result of its own."""

    groups: tuple[GroupWork, ...]
    columns: GroupColumns
    memory_bytes: int


class NotProven(Exception):
    """What was written is not what was read."""


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
    keeps_order = bool(target.order_by)
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


def _rewritten(opened: Engine, task: RewriteTask, group: GroupWork, files: _Footers) -> dict[str, Any]:
    try:
        return {"group": group.number, **_GroupRewrite(opened, task, group, files).run()}
    except CannotRewrite as reason:
        return {"group": group.number, "cannot": str(reason)}
    except Exception as error:  # noqa: BLE001
        # As above: the failure of one group is a value.
        return {"group": group.number, "error": failure_text(error)}


class _Footers:
    """Local copies, shapes, row and null counts of all data files of a task."""

    def __init__(self, opened: Engine, task: RewriteTask) -> None:
        store = task.groups[0].target.store
        self.local_of: dict[str, str] = {}
        for group in task.groups:
            members = [file.path for file in group.files.data] + [file.path for file in group.files.deletes]
            for path in members:
                if path not in self.local_of:
                    place = opened.folder / f"fetched-{len(self.local_of)}"
                    self.local_of[path] = place_for(path, store).local_copy(path, str(place))
        data = [file for group in task.groups for file in group.files.data]
        readable = [self.local_of[file.path] for file in data if file.content["file-format"] == "parquet"]
        self.shapes: dict[str, Shape] = shapes_of(opened.connection, readable)
        self.rows, self.nulls = null_counts(opened.connection, readable) if readable else ({}, {})


class _GroupRewrite:
    """One group on a connection of its own to the task's engine, so that its temporary tables go with it."""

    def __init__(self, opened: Engine, task: RewriteTask, group: GroupWork, footers: _Footers) -> None:
        self.folder: Path = opened.folder
        self.connection: duckdb.DuckDBPyConnection = opened.connection.cursor()
        self.columns = task.columns
        self.group = group
        self.footers = footers

    def run(self) -> dict[str, Any]:
        try:
            for setting in SESSION_SETTINGS:
                self.connection.execute(setting)
            read = self._files()
            relation = relation_of(self.connection, self.group.files, read, self.columns, self.footers.local_of)
            target = replace(self.group.target, scratch=str(self.folder))
            outputs = write_rows(self.connection, relation.kept, target, {})
            with withdrawn_on_failure(outputs, target):
                lost = self._prove(read, relation, outputs)
        finally:
            self.connection.close()
        return {"outputs": [output.content for output in outputs], "rows": _rows_of(outputs), "deleted": lost}

    def _files(self) -> list[ReadFile]:
        read = []
        for place, (file, constants) in enumerate(zip(self.group.files.data, self.group.constants, strict=True)):
            if file.content["file-format"] != "parquet":
                raise CannotRewrite(f"data files in {file.content['file-format']} are read by Spark")
            local = self.footers.local_of[file.path]
            if self.footers.rows[local] != file.rows:
                raise NotProven(f"{file.path} holds {self.footers.rows[local]} rows, its manifest says {file.rows}")
            read.append(ReadFile(place, file, local, self.footers.shapes[local], constants))
        return read

    def _prove(self, read: Sequence[ReadFile], relation: Relation, outputs: Sequence[OutputFile]) -> int:
        """Rows and nulls before, less the deleted ones, are those after; returns how many rows deletes took."""
        expected = self._nulls_before(read)
        lost_rows, lost_nulls = self._lost(relation, list(expected))
        rows = sum(file.planned.rows for file in read)
        if _rows_of(outputs) != rows - lost_rows:
            raise NotProven(f"{rows} rows were read, {lost_rows} of them deleted, but {_rows_of(outputs)} written")
        names = {column.field_id: column.name for column in self.columns.wanted}
        for field_id, before in expected.items():
            after = _nulls_after(outputs, field_id)
            if after is not None and after != before - lost_nulls[field_id]:
                raise NotProven(
                    f"{names[field_id]} had {before - lost_nulls[field_id]} nulls before and has {after} after"
                )
        return lost_rows

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
        name = next(
            (
                column.name
                for column in file.shape.columns
                if (column.field_id if file.shape.has_field_ids else self.columns.name_mapping.get(column.name))
                == field_id
            ),
            None,
        )
        if name is not None:
            return self.footers.nulls.get((file.local, name))
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


def _rows_of(outputs: Sequence[OutputFile]) -> int:
    return sum(int(output.content["record-count"]) for output in outputs)


def _nulls_after(outputs: Sequence[OutputFile], field_id: int) -> int | None:
    total = 0
    for output in outputs:
        told = output.content.get("null-value-counts", {"keys": [], "values": []})
        counts = dict(zip(told["keys"], told["values"], strict=True))
        if field_id not in counts:
            return None
        total += counts[field_id]
    return total


def packed(task: RewriteTask) -> bytearray:
    """The task as Spark carries it to a worker."""
    return bytearray(pickle.dumps(task))
