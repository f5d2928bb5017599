"""`relayout demo`: generated sources go through plan, apply, a query, a change and what the change costs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from relayout.config.load import FILE_NAME
from relayout.errors import UsageError
from relayout.jobs.samples.regions import COUNTIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from relayout.commit.receipts import Receipt
    from relayout.ingest.plan import IngestPlan
    from relayout.jobs.progress import Listener
    from relayout.upkeep.lake_status import LakeStatus

Say = Callable[[str], None]


class Lake(Protocol):
    """The verbs that the story uses, as the Python door has them."""

    def plan(self) -> IngestPlan: ...
    def apply(self, *, listener: Listener) -> Receipt: ...
    def sql(self, text: str) -> DataFrame: ...
    def status(self) -> LakeStatus: ...


YEARS = range(2014, 2024)
ROWS_PER_YEAR = 60_000

CONFIGURATION = """\
# What `relayout demo` declares. Try it on: edit this file or the sources, then run plan and apply here.
warehouse: ./lake
namespace: econ
spark: {driver_memory: 1g}
defaults: {target_file_mb: 128}
tables:
  regional_income:
    source: "downloads/regional_income/income_{year}_*.json"
    schema: {geo_fips: string, line_code: int}
    partitions:
      keys: [{name: year, type: INTEGER}]
    sort: [geo_fips, line_code]
"""

QUERY = (
    "select year, count(*) as lines, count(distinct geo_fips) as counties, sum(value) as total "
    "from regional_income where year >= 2020 group by year order by year"
)
CORRECTED_YEAR = 2022


def demo(directory: Path, say: Say, open_lake: Callable[[str], Lake]) -> None:
    """Tell the story in a new folder, which stays for trying things out."""
    if directory.exists():
        raise UsageError(
            "the demo wants a folder that is not there yet",
            where=str(directory),
            next="choose another: relayout demo DIR",
        )
    _title(say, "Sources: one JSON file a year and half, as they are downloaded")
    size_bytes = write_sources(directory)
    (directory / FILE_NAME).write_text(CONFIGURATION, encoding="utf-8")
    say(f"{2 * len(YEARS)} files, {2 * len(YEARS) * ROWS_PER_YEAR // 2:,} rows, {size_bytes / 1e6:,.0f} MB")
    lake = open_lake(str(directory))
    _title(say, "relayout plan: what would happen, and why")
    _plan(lake, say)
    _title(say, "relayout apply: batch by batch, each visible at once")
    _apply(lake, say)
    _title(say, f'relayout sql "{QUERY}"')
    _query(lake, say)
    _title(say, "relayout plan, again")
    _plan(lake, say)
    _title(say, f"A corrected file for {CORRECTED_YEAR} arrives: only that batch is replaced")
    write_half(_file(directory, CORRECTED_YEAR, 2), CORRECTED_YEAR, 2, correction=1_000)
    _plan(lake, say)
    _apply(lake, say)
    _query(lake, say)
    _title(say, "relayout status")
    _status(lake, say)
    say(f"\nAll of it is in {directory}; go on with: cd {directory} && relayout status regional_income")


def _title(say: Say, text: str) -> None:
    say(f"\n── {text}")


def _plan(lake: Lake, say: Say) -> None:
    from relayout.report.plan_text import plan_text

    say(plan_text(lake.plan()))


def _apply(lake: Lake, say: Say) -> None:
    from relayout.report.progress import progress_for
    from relayout.report.receipt_text import receipt_text

    with progress_for(sys.stderr) as listener:
        receipt = lake.apply(listener=listener)
    say(receipt_text(receipt))


def _query(lake: Lake, say: Say) -> None:
    from relayout.report.rows_text import rows_table

    frame = lake.sql(QUERY)
    say("".join(rows_table(frame.columns, frame.collect())))


def _status(lake: Lake, say: Say) -> None:
    from relayout.report.status_text import status_text

    say(status_text(lake.status()))


def write_sources(directory: Path) -> int:
    """Write two files for each year and return their bytes."""
    total = 0
    for year in YEARS:
        for half in (1, 2):
            file = _file(directory, year, half)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_half(file, year, half)
            total += file.stat().st_size
    return total


def _file(directory: Path, year: int, half: int) -> Path:
    return directory / "downloads" / "regional_income" / f"income_{year}_{half}.json"


def write_half(file: Path, year: int, half: int, correction: int = 0) -> None:
    """Rows that depend on year, half and correction alone."""
    import duckdb

    places = ", ".join(f"('{fips}', '{name.replace(chr(39), chr(39) * 2)}, {state}')" for fips, name, state in COUNTIES)
    rows = ROWS_PER_YEAR // 2
    with duckdb.connect() as connection:
        connection.execute(
            f"""
            COPY (
              SELECT place.fips AS geo_fips, place.name AS geo_name,
                     CAST(number // {len(COUNTIES)} AS INTEGER) AS line_code,
                     40000 + (hash(number, {year}, {half}) % 50000)::BIGINT + {correction} AS value
              FROM range({rows}) AS lines(number)
              JOIN (SELECT row_number() OVER () - 1 AS place_number, * FROM (VALUES {places}) AS v(fips, name)) AS place
                ON number % {len(COUNTIES)} = place.place_number
              ORDER BY number
            ) TO '{str(file).replace("'", "''")}' (FORMAT json)
            """
        )
