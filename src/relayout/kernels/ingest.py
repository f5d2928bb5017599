"""Source files to data files inside one Spark task: read typed, lay out, describe; memory is bounded, disk is not."""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any
from zipimport import zipimporter

from relayout.errors import MissingError, RelayoutError, SourceError
from relayout.kernels.engine import engine
from relayout.kernels.write import Layouts, OutputFile, Target, withdrawn_on_failure, write_layouts
from relayout.read.reasons import plain_reason
from relayout.table.batches import BatchKey, Scalar
from relayout.table.duckdb_text import NEEDS_EXACT_NUMBERS, read_clause
from relayout.table.names import quote_duckdb
from relayout.table.sources import SourceFile
from relayout.table.types import duckdb_type, sql_literal

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_ARROW_BATCH = 65_536


@dataclass(frozen=True, slots=True)
class TaskFile:
    """One source file of a task with the typed values that its path tells."""

    source: SourceFile
    format: str
    values: tuple[tuple[str, Scalar], ...]


@dataclass(frozen=True, slots=True)
class IngestTask:
    """Everything one task needs.

    `read_columns` are the source's columns in their types; `literals` are constant columns as DuckDB text;
    `constants` are batch values that hold for all rows; `wanted`, unless empty, limits rows to these batches where a
    file holds more. `others` are targets that get the same rows after `target` has them.
    """

    number: int
    files: tuple[TaskFile, ...]
    read_columns: tuple[tuple[str, str], ...]
    literals: tuple[tuple[str, str], ...]
    constants: Mapping[str, Scalar]
    wanted: tuple[BatchKey, ...]
    target: Target
    memory_bytes: int
    others: tuple[Target, ...] = ()


class SourceMoved(Exception):
    """A source file is not the one that was planned with."""


class TaskFailed(Exception):
    """Why a task failed, in one line, so that it is still to be found in Spark's account of the failure."""


def run_tasks(packed_tasks: Iterable[bytes]) -> Iterator[str]:
    """The whole journey of pickled tasks; one JSON document per task, failures included."""
    for each in packed_tasks:
        yield json.dumps(run_task(pickle.loads(each)))
        _keep_libraries()


@cache
def _keep_libraries() -> None:
    """Spare a worker the costs of what it imported by now, which Spark makes it pay again with every task.

    Garbage collection walks all of it, and finders of zipped packages read their archives anew.
    """
    gc.collect()
    gc.freeze()
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def run_task(task: IngestTask) -> dict[str, Any]:
    """Outputs and source hashes of one task, or the reason why it failed."""
    try:
        with _Workbench(task) as bench:
            hashes = bench.checked_sources()
            layouts = bench.write()
            with withdrawn_on_failure(layouts.all_files, task.target):
                bench.check_sources_again()
        return {"task": task.number, **_told(layouts), "hashes": hashes}
    except Exception as error:  # noqa: BLE001
        # The reason travels as a value, so that one bad batch does not end the job that carries the others.
        return {"task": task.number, "error": failure_text(error), "moved": isinstance(error, SourceMoved)}


def read_rows(tasks: Mapping[int, IngestTask]) -> Any:
    """A mapInArrow function that gives each partition the source rows of its task, for Spark to go on with."""

    def read(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _told_in_one_line(), _Workbench(tasks[_partition_id()]) as bench:
            bench.checked_sources()
            yield from bench.rows()
            bench.check_sources_again()

    return read


def incoming_name(position: int) -> str:
    """What Spark calls a column on its way here: PySpark takes the names of such columns for expressions."""
    return f"c{position}"


def write_incoming(tasks: Mapping[int, IngestTask]) -> Any:
    """A mapInArrow function that lays out the rows Spark computed, one task per partition."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        task = tasks[_partition_id()]
        walk = iter(batches)
        first = next(walk, None)
        layouts = Layouts([], [[] for _ in task.others], [])
        if first is not None:
            with _Workbench(task) as bench:
                layouts = bench.write_arrow(first, walk)
        with withdrawn_on_failure(layouts.all_files, task.target), _Workbench(task) as bench:
            hashes = bench.checked_sources()
        result = {"task": task.number, **_told(layouts), "hashes": hashes}
        yield pa.RecordBatch.from_pydict({"result": [json.dumps(result)]})

    return write


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise TaskFailed(failure_text(error)) from error


def failure_text(error: BaseException) -> str:
    """The first line says it; DuckDB adds hints about its own options that mean nothing to our users."""
    if isinstance(error, RelayoutError):
        return f"{error.where}: {error.what}" if error.where else error.what
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].strip() if lines else type(error).__name__


def _told(layouts: Layouts) -> dict[str, Any]:
    others = [other if isinstance(other, str) else [_plain(output) for output in other] for other in layouts.others]
    return {"outputs": [_plain(output) for output in layouts.files], "others": others, "seconds": layouts.seconds}


def _plain(output: OutputFile) -> dict[str, Any]:
    return {"batch": output.batch.to_json(), "content": output.content}


def _partition_id() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this runs only inside a Spark task")
    return context.partitionId()


class _Workbench:
    """A connection, a scratch folder and local copies of the task's files, all gone at the end."""

    def __init__(self, task: IngestTask) -> None:
        self.task = task
        self.exact_numbers = False

    def __enter__(self) -> _Workbench:
        task = self.task
        self._open = engine(task.target.scratch, task.memory_bytes, keeps_order=self._is_sorted)
        opened = self._open.__enter__()
        self.folder, self.connection = opened.folder, opened.connection
        self.target = replace(task.target, scratch=str(self.folder))
        self.others = tuple(replace(other, scratch=str(self.folder)) for other in task.others)
        return self

    @property
    def _is_sorted(self) -> bool:
        return any(target.order_by or target.curve for target in (self.task.target, *self.task.others))

    def __exit__(self, *what: Any) -> None:
        self._open.__exit__(*what)

    def checked_sources(self) -> dict[str, str]:
        """Content hashes by path; every file must still be the one that was listed."""
        from relayout.read.local_files import content_hash

        self.local = self._local_paths()
        self._check_unmoved()
        return {file.source.path: content_hash(local) for file, local in zip(self.task.files, self.local, strict=True)}

    def check_sources_again(self) -> None:
        self._check_unmoved()

    def _local_paths(self) -> list[str]:
        from relayout.read.objects import ObjectStore

        store: ObjectStore | None = None
        places = []
        for number, file in enumerate(self.task.files):
            if not file.source.path.startswith("s3://"):
                places.append(file.source.path)
                continue
            store = store or ObjectStore.from_properties(self.target.store)
            name = file.source.path.rsplit("/", 1)[-1][-100:]
            place = self.folder / "fetched" / f"{number}" / (name or "object")
            place.parent.mkdir(parents=True)
            try:
                store.fetch(file.source.path, str(place))
            except MissingError:
                raise SourceMoved(f"{file.source.path} is gone since it was listed") from None
            # The copy is whole, so it is the listed object if that one is still there afterwards.
            if moved := store.moved(file.source):
                raise SourceMoved(f"{file.source.path} {moved}")
            places.append(str(place))
        return places

    def _check_unmoved(self) -> None:
        for file in self.task.files:
            source = file.source
            if source.path.startswith("s3://"):
                continue
            try:
                facts = os.stat(source.path)
            except FileNotFoundError:
                raise SourceMoved(f"{source.path} is gone since it was listed") from None
            seen = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            if seen != (source.size_bytes, source.modified_ns, source.changed_ns):
                raise SourceMoved(f"{source.path} changed since it was listed")

    @property
    def relation(self) -> str:
        """All rows of the task as a FROM item in the source's columns and the constant ones."""
        from relayout.read.local_files import described

        files = [
            described(local, file.format, file.values) for file, local in zip(self.task.files, self.local, strict=True)
        ]
        source = read_clause(files, self.task.read_columns, exact_numbers=self.exact_numbers)
        extra = "".join(f", {text} AS {quote_duckdb(name)}" for name, text in self.task.literals)
        replaced = [quote_duckdb(name) for name, _ in self.task.literals if self._reads(name)]
        hidden = f" EXCLUDE ({', '.join(replaced)})" if replaced else ""
        return f"(SELECT *{hidden}{extra} FROM {source} AS source{self._only_wanted('source')})"

    def _reads(self, name: str) -> bool:
        return any(column == name for column, _ in self.task.read_columns)

    def _only_wanted(self, alias: str) -> str:
        open_columns = [(name, kind) for name, kind in self.target.batch_columns if name not in self.task.constants]
        if not open_columns or not self.task.wanted:
            return ""
        rows = ", ".join(
            "(" + ", ".join(sql_literal(dict(key.items)[name], kind, "duckdb") for name, kind in open_columns) + ")"
            for key in self.task.wanted
        )
        names = [f"w{index}" for index in range(len(open_columns))]
        match = " AND ".join(
            f"wanted.{short} IS NOT DISTINCT FROM CAST({alias}.{quote_duckdb(name)} AS {duckdb_type(kind)})"
            for short, (name, kind) in zip(names, open_columns, strict=True)
        )
        return f" WHERE EXISTS (SELECT 1 FROM (VALUES {rows}) AS wanted({', '.join(names)}) WHERE {match})"

    def write(self) -> Layouts:
        """Read and lay out at once; numbers are read in the fast way unless that would lose digits."""
        try:
            return self._from_sources()
        except Exception as error:
            if self.exact_numbers or NEEDS_EXACT_NUMBERS not in str(error):
                raise
        self.exact_numbers = True
        return self._from_sources()

    def _from_sources(self) -> Layouts:
        with self._naming_files():
            return self._laid_out(self.relation)

    def _laid_out(self, relation: str) -> Layouts:
        return write_layouts(self.connection, relation, self.target, self.task.constants, self.others)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Source rows as Arrow, exact from the start because rows that are out cannot be taken back."""
        self.exact_numbers = True
        with self._naming_files():
            yield from self.connection.sql(f"SELECT * FROM {self.relation}").to_arrow_reader(ROWS_PER_ARROW_BATCH)

    @contextmanager
    def _naming_files(self) -> Iterator[None]:
        """An error that is about one of the task's files says so, in plain words and with the file's own address."""
        try:
            yield
        except Exception as error:
            message = f"{error.what} {error.where}" if isinstance(error, RelayoutError) else str(error)
            named = [
                (local, file.source.path)
                for file, local in zip(self.task.files, self.local, strict=True)
                if local in message
            ]
            if not named or NEEDS_EXACT_NUMBERS in message:
                raise
            local, path = max(named, key=lambda found: len(found[0]))
            reason = error.what if isinstance(error, RelayoutError) else plain_reason(message, local)
            raise SourceError(reason, where=path) from error

    def write_arrow(self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Layouts:
        import pyarrow as pa

        names = [name for name, _ in self.target.columns]
        schema = pa.schema([field.with_name(name) for field, name in zip(first.schema, names, strict=True)])
        renamed = (batch.rename_columns(names) for batch in chain([first], rest))
        self.connection.register("incoming", pa.RecordBatchReader.from_batches(schema, renamed))
        return self._laid_out(f"(SELECT * FROM incoming{self._only_wanted('incoming')})")


def packed(tasks: Sequence[IngestTask]) -> list[bytes]:
    """Tasks as Spark carries them to its workers."""
    return [pickle.dumps(task) for task in tasks]
