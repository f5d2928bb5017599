"""Three small tables that take every way through the engine, and the rows that must come out.

`income` is JSON whose year stands in file names: whole files go through the kernel, and are sorted. `wages` is CSV in
folders with batches finer than partitions and a column that Spark computes. `readings` is Parquet whose batches stand
inside the files, partitioned by a month and a bucket.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]

YEARS = (2021, 2022, 2023)
QUARTERS = (1, 2)
COUNTIES = 40


@dataclass(frozen=True, slots=True)
class Sample:
    """One declared table: source files by relative path, rows, and the batches that loading it makes."""

    name: str
    declaration: Mapping[str, Any]
    columns: tuple[str, ...]
    files: Mapping[str, bytes]
    rows: tuple[Row, ...]
    batches: int


@dataclass(frozen=True, slots=True)
class Change:
    """One rewritten source file; `batch` is the only batch that it touches."""

    table: str
    path: str
    batch: Mapping[str, Any]


CHANGES = (
    Change("income", "income/b_2022_sample.json", {"year": 2022}),
    Change("wages", "wages/year=2022/quarter=2/all.csv", {"year": 2022, "quarter": 2}),
    Change("readings", "readings/west.parquet", {"region": "west"}),
)


def samples(root: str, edition: int = 1) -> tuple[Sample, ...]:
    """All tables with their sources below `root`; from edition 2 on the files of `CHANGES` hold other rows."""
    return income(root, edition), wages(root, edition), readings(root, edition)


def income(root: str, edition: int) -> Sample:
    files: dict[str, bytes] = {}
    rows: list[Row] = []
    for part in ("a", "b"):
        for year in YEARS:
            path = f"income/{part}_{year}_sample.json"
            changed = edition - 1 if path == CHANGES[0].path else 0
            made = [
                (f"{index:05d}", index * 10 + year, None if index % 7 == 0 else f"Ö{part}")
                for index in _counties(changed)
            ]
            files[path] = "".join(
                json.dumps({"geo_fips": code, "value": value, "note": note}) + "\n" for code, value, note in made
            ).encode()
            rows += [(*row, year) for row in made]
    declaration = {
        "source": f"{root}/income/*_{{year}}_*.json",
        "schema": {"geo_fips": "string"},
        "partitions": {"keys": [{"name": "year", "type": "INTEGER"}]},
        "sort": ["geo_fips"],
    }
    return Sample("income", declaration, ("geo_fips", "value", "note", "year"), files, tuple(rows), len(YEARS))


def wages(root: str, edition: int) -> Sample:
    files: dict[str, bytes] = {}
    rows: list[Row] = []
    for year in YEARS:
        for quarter in QUARTERS:
            path = f"wages/year={year}/quarter={quarter}/all.csv"
            changed = edition - 1 if path == CHANGES[1].path else 0
            made = [(f"{index:05d}", index + 1, _cents(year * 100 + quarter + index)) for index in _counties(changed)]
            files[path] = ("county,employed,mean\n" + "".join(f"{a},{b},{c}\n" for a, b, c in made)).encode()
            rows += [(a, b, c, b * c, "sample", year, quarter) for a, b, c in made]
    declaration = {
        "source": f"{root}/wages/year=*/quarter=*/*.csv",
        "schema": {"county": "string", "employed": "long", "mean": "decimal(12,2)", "paid": "decimal(18,2)"},
        "columns": {"paid": "cast(employed * mean as decimal(18,2))", "origin": "'sample'"},
        "partitions": {"keys": ["year"]},
        "batch_partition_columns": ["year", "quarter"],
    }
    columns = ("county", "employed", "mean", "paid", "origin", "year", "quarter")
    return Sample("wages", declaration, columns, files, tuple(rows), len(YEARS) * len(QUARTERS))


def readings(root: str, edition: int) -> Sample:
    files: dict[str, bytes] = {}
    rows: list[Row] = []
    for name, regions in (("east", ("north", "south")), ("west", ("west",))):
        path = f"readings/{name}.parquet"
        changed = edition - 1 if path == CHANGES[2].path else 0
        made: list[Row] = [
            (
                index,
                regions[index % len(regions)],
                datetime.fromisoformat("2023-01-31T23:59") + timedelta(minutes=index),
                None if index % 5 == 0 else index / 8,
                date(2023, 1, 1) + timedelta(days=index),
                index % 2 == 0,
            )
            for index in _counties(changed)
        ]
        files[path] = _parquet(made)
        rows += made
    declaration = {
        "source": f"{root}/readings/*.parquet",
        "partitions": {
            "keys": [{"name": "taken_at", "transform": "month"}, {"name": "station", "transform": "bucket[3]"}]
        },
        "batch_partition_columns": ["region"],
    }
    return Sample("readings", declaration, READING_COLUMNS, files, tuple(rows), 3)


READING_COLUMNS = ("station", "region", "taken_at", "level", "due", "valid")


def _counties(changed: int) -> range:
    """One row fewer and another start with every change, so that a file changes in size and in content."""
    return range(changed, COUNTIES - changed)


def _cents(quarters: int) -> Decimal:
    return (Decimal(quarters) / 4).quantize(Decimal("0.01"))


def _parquet(rows: list[Row]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (pa.int64(), pa.string(), pa.timestamp("us"), pa.float64(), pa.date32(), pa.bool_())
    held = {
        name: pa.array([row[place] for row in rows], kind)
        for place, (name, kind) in enumerate(zip(READING_COLUMNS, kinds, strict=True))
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(held), sink)
    return sink.getvalue()
