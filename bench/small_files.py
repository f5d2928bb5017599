"""Tables of many small files, made once and shared by all sides: no rewrite changes the files that it reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.places import BUILD

GENERATION = 1
"""Part of the folder's name; raised when the rows below change."""

COLUMNS = ("id", "customer_id", "event_date", "region", "amount", "note")
DECLARED = "id bigint, customer_id bigint, event_date date, region string, amount double, note string"

ROWS = """
SELECT number AS id,
       -- A few customers buy most; a multiplicative generator looks random and is the same with any number of threads.
       CAST(1 + pow(((number * 2654435761) % 4294967296) / 4294967296.0, 3) * 1000000 AS BIGINT) AS customer_id,
       DATE '2020-01-01' + CAST((number * 2246822519) % 1500 AS INTEGER) AS event_date,
       'region-' || ((number * 3266489917) % 50) AS region,
       CAST((number * 668265263) % 1000000 AS DOUBLE) / 100 AS amount,
       CASE WHEN number % 7 = 0 THEN 'note ' || (number % 97) END AS note
FROM range({first}, {last}) AS numbers(number)
"""


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """How many rows in how many files; with partitions, files are dealt out to them evenly."""

    rows: int
    files: int
    partitions: int = 0

    @property
    def folder(self) -> Path:
        return BUILD / "data" / f"small-{GENERATION}-{self.rows}x{self.files}x{self.partitions}"

    def made(self) -> Sequence[Path]:
        """The files, written when they are not there yet."""
        if not (self.folder / ".complete").exists():
            self._write()
        return sorted(self.folder.rglob("*.parquet"))

    @property
    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.made())

    def _write(self) -> None:
        each = self.rows // self.files
        with duckdb.connect() as connection:
            for number in range(self.files):
                folder = self.folder / (f"part={number % self.partitions}" if self.partitions else "")
                folder.mkdir(parents=True, exist_ok=True)
                rows = ROWS.format(first=number * each, last=(number + 1) * each)
                path = folder / f"small-{number:05d}.parquet"
                connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
        (self.folder / ".complete").touch()
        os.sync()
