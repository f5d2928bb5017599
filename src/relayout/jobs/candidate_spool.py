"""Candidates in the order of their partitions; beyond a few thousand they wait on disk, so memory stays flat."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from relayout.compact.candidates import Candidate

IN_MEMORY = 50_000
_CHUNK = 20_000
_MEMORY_LIMIT = "96MB"

_COLUMNS = (
    ("bin", "int64"),
    ("key", "int64"),
    ("sequence", "int64"),
    ("path", "binary"),
    ("format", "string"),
    ("rows", "int64"),
    ("size", "int64"),
    ("why", "int32"),
    ("match", "string"),
    ("first_row_id", "int64"),
    ("sort_order_id", "int32"),
    ("deletes", "binary"),
)

_PATH = 3


class CandidateSpool:
    """Takes candidates in any order and gives them back by rank of their bin, then age, then path."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._held: list[Candidate] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._database: Any = None
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._database is not None:
            self._database.close()
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, candidate: Candidate) -> None:
        self._held.append(candidate)
        self.count += 1
        if len(self._held) >= (self._in_memory if self._database is None else _CHUNK):
            self._put_down()

    def ordered(self, ranks: Sequence[int]) -> Iterator[Candidate]:
        """All candidates; `ranks` says where each bin comes."""
        if self._database is None:
            yield from sorted(self._held, key=lambda each: (ranks[each.bin], each.data_sequence_number, each.path))
            return
        self._put_down()
        self._database.register("ranks_given", _ranks_table(ranks))
        self._database.execute("CREATE TABLE ranks AS SELECT * FROM ranks_given")
        names = ", ".join(f"waiting.{name}" for name, _ in _COLUMNS)
        found = self._database.execute(
            f"SELECT {names} FROM waiting JOIN ranks USING (bin) ORDER BY ranks.rank, waiting.sequence, waiting.path"
        )
        while rows := found.fetchmany(_CHUNK):
            yield from map(_candidate, rows)

    def _put_down(self) -> None:
        import pyarrow as pa

        if self._database is None:
            self._open()
        arrays = [pa.array(values, type=kind) for values, (_, kind) in zip(_columns(self._held), _COLUMNS, strict=True)]
        self._database.register("chunk", pa.table(arrays, names=[name for name, _ in _COLUMNS]))
        self._database.execute("INSERT INTO waiting SELECT * FROM chunk")
        self._database.unregister("chunk")
        self._held = []

    def _open(self) -> None:
        import duckdb
        import pyarrow as pa

        self._folder = tempfile.TemporaryDirectory(prefix="relayout-plan-")
        self._database = duckdb.connect(
            str(Path(self._folder.name) / "candidates.duckdb"),
            config={
                "memory_limit": _MEMORY_LIMIT,
                "threads": 1,
                "temp_directory": str(Path(self._folder.name) / "spill"),
            },
        )
        empty = pa.table([pa.array([], type=kind) for _, kind in _COLUMNS], names=[name for name, _ in _COLUMNS])
        self._database.register("shape", empty)
        self._database.execute("CREATE TABLE waiting AS SELECT * FROM shape")
        self._database.unregister("shape")


def _columns(candidates: Sequence[Candidate]) -> list[list[Any]]:
    columns: list[list[Any]] = [list(map(attrgetter(field.name), candidates)) for field in fields(Candidate)]
    columns[_PATH] = [path.encode("utf-8", "surrogatepass") for path in columns[_PATH]]
    columns[-1] = [array("q", deletes).tobytes() for deletes in columns[-1]]
    return columns


def _candidate(row: tuple[Any, ...]) -> Candidate:
    path = row[_PATH].decode("utf-8", "surrogatepass")
    values: list[Any] = [*row[:_PATH], path, *row[_PATH + 1 : -1], tuple(array("q", row[-1]))]
    return Candidate(*values)


def _ranks_table(ranks: Sequence[int]) -> Any:
    import pyarrow as pa

    return pa.table({"bin": pa.array(range(len(ranks)), "int64"), "rank": pa.array(ranks, "int64")})
