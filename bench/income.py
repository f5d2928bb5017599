"""Source files like regional income statistics: per year one file for each published table, all regions in each.

The same parameters always give the same bytes, so files are made once and used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.places import BUILD

GENERATION = 1
"""Part of the folder's name; raised when the rows below change."""

TABLES = ("CAINC1", "CAINC4", "CAINC5N", "CAINC6N", "CAINC30")

COLUMNS: Mapping[str, str] = {
    "geo_fips": "string",
    "geo_name": "string",
    "region": "int",
    "table_name": "string",
    "line_code": "int",
    "description": "string",
    "unit": "string",
    "value": "double",
    "note": "string",
}

ROWS = """
SELECT printf('%05d', 1001 + 17 * place) AS geo_fips,
       concat('County ', place, ', ', chr(CAST(65 + place % 26 AS INTEGER)),
              chr(CAST(65 + place // 26 % 26 AS INTEGER))) AS geo_name,
       CAST(1 + place % 8 AS INTEGER) AS region,
       '{table}' AS table_name,
       CAST(10 * (line + 1) AS INTEGER) AS line_code,
       ['Personal income', 'Population', 'Per capita personal income', 'Wages and salaries', 'Proprietors'' income']
           [1 + line % 5] AS description,
       'Thousands of dollars' AS unit,
       -- A multiplicative generator: looks random to a compressor and is the same with any number of threads.
       (place * 2654435761 + line * 2246822519 + {seed} * 3266489917) % 4294967296 / 100.0 AS value,
       CASE WHEN (place + line) % 11 = 0 THEN '(D) not shown to avoid disclosure' END AS note
FROM (SELECT number % {regions} AS place, number // {regions} AS line FROM range({regions} * {lines}) AS all_of(number))
"""


@dataclass(frozen=True, slots=True)
class Income:
    """How much of it: years, regions, and lines per table, region and year."""

    years: int
    regions: int
    lines: int

    @property
    def folder(self) -> Path:
        return BUILD / "data" / f"income-{GENERATION}-{self.years}x{self.regions}x{self.lines}"

    @property
    def rows(self) -> int:
        return self.years * len(TABLES) * self.regions * self.lines

    @property
    def pattern(self) -> str:
        return str(self.folder / "*_{year}.json")

    @property
    def size_bytes(self) -> int:
        return sum(Path(file).stat().st_size for files in self.batches().values() for file in files)

    def batches(self) -> dict[int, list[str]]:
        """Source files by year; made now unless they are there."""
        years = range(2024 - self.years, 2024)
        files = {year: [self.folder / f"{table}_{year}.json" for table in TABLES] for year in years}
        self.folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            for year, members in files.items():
                for number, (file, table) in enumerate(zip(members, TABLES, strict=True)):
                    if not file.exists():
                        self._write(connection, file, table, year * len(TABLES) + number)
        return {year: [str(file) for file in members] for year, members in files.items()}

    def selections(self) -> list[str]:
        """A query for DuckDB per year that reads the year's rows."""
        columns = ", ".join(f"{name}: '{kind.replace('string', 'varchar')}'" for name, kind in COLUMNS.items())
        return [
            f"SELECT *, {year} AS year FROM read_json({files!r}, columns = {{{columns}}}, format = 'newline_delimited')"
            for year, files in self.batches().items()
        ]

    def _write(self, connection: duckdb.DuckDBPyConnection, file: Path, table: str, seed: int) -> None:
        rows = ROWS.format(table=table, seed=seed, regions=self.regions, lines=self.lines)
        fresh = file.with_suffix(".fresh")
        connection.execute(f"COPY ({rows}) TO '{fresh}' (FORMAT json)")
        fresh.rename(file)
