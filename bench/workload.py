"""Twenty million observations, and the queries that people ask of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench.places import BUILD

GENERATION = 1
"""Part of the folder's name; raised when the rows below change."""

REGIONS = 200
TOPICS = 25
LINES = 500
FIRST_YEAR = 2010

ROWS = """
SELECT printf('%05d', (number * 7919) % {places}) AS geo_fips,
       CAST((number * 7919) % {places} % {regions} AS INTEGER) AS region,
       CAST(number % {lines} AS INTEGER) AS line,
       CAST(number % {lines} % {topics} AS INTEGER) AS topic,
       CAST((number * 2654435761 + {year} * 2246822519) % 4294967296 AS BIGINT) AS value,
       (number * 3266489917 + {year}) % 1000003 / 1000003.0 AS share
FROM range({rows}) AS all_of(number)
"""


@dataclass(frozen=True, slots=True)
class Observations:
    """So many rows in each of so many years, of so many places."""

    years: int
    rows_per_year: int
    places: int

    @property
    def rows(self) -> int:
        return self.years * self.rows_per_year

    @property
    def folder(self) -> Path:
        return BUILD / "data" / f"observations-{GENERATION}-{self.years}x{self.rows_per_year}x{self.places}"

    def write(self) -> None:
        """A Parquet file per year; made once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            for year in range(FIRST_YEAR, FIRST_YEAR + self.years):
                file = self.folder / f"{year}.parquet"
                if file.exists():
                    continue
                rows = ROWS.format(
                    places=self.places,
                    regions=REGIONS,
                    lines=LINES,
                    topics=TOPICS,
                    year=year,
                    rows=self.rows_per_year,
                )
                fresh = file.with_suffix(".fresh")
                connection.execute(f"COPY ({rows}) TO '{fresh}' (FORMAT parquet)")
                fresh.rename(file)

    def declared(self) -> dict[str, Any]:
        """By year and region, as it came; three alternates for those who ask otherwise."""
        year = {"name": "year", "type": "int"}
        by_year = {"batch_partition_columns": ["year"], "incremental_keys": ["year"]}

        def alternate(name: str, *keys: dict[str, str], sort: list[str]) -> dict[str, Any]:
            return {"name": name, "partition": {"keys": list(keys)}, "sort": sort, **by_year}

        return {
            "source": str(self.folder / "{year}.parquet"),
            "partitions": {"keys": [year, {"name": "region", "type": "int"}]},
            **by_year,
            "alternate_partitions": [
                alternate("by_place", {"name": "geo_fips", "transform": "bucket[32]"}, sort=["geo_fips"]),
                alternate("by_topic", {"name": "topic", "type": "int"}, sort=["line"]),
                alternate("by_year", year, sort=["line", "geo_fips"]),
            ],
        }

    def queries(self, count: int) -> list[str]:
        """Aggregates under mixed predicates; the same every time."""
        dice = random.Random(20)
        asked = "SELECT count(*) AS rows, sum(value) AS total, max(share) AS most FROM observations"
        return [f"{asked} WHERE {self._where(dice)}" for _ in range(count)]

    def _where(self, dice: random.Random) -> str:
        places = [f"'{dice.randrange(self.places):05d}'" for _ in range(3)]
        year = FIRST_YEAR + dice.randrange(self.years)
        line = dice.randrange(LINES)
        topic = dice.randrange(TOPICS)
        region = dice.randrange(REGIONS)
        return dice.choice(
            [
                f"geo_fips = {places[0]}",
                f"geo_fips IN ({', '.join(places)})",
                f"geo_fips = {places[0]} AND line < {line}",
                f"geo_fips = {places[0]} AND topic IN ({topic}, {(topic + 7) % TOPICS})",
                f"geo_fips = {places[0]} AND year = {year}",
                f"topic = {topic}",
                f"topic = {topic} AND year >= {year}",
                f"topic = {topic} AND share > 0.9",
                f"topic IN ({topic}, {(topic + 3) % TOPICS}) AND geo_fips LIKE '00%'",
                f"line = {line} AND topic = {line % TOPICS}",
                f"region = {region}",
                f"region = {region} AND year = {year}",
                f"region = {region} AND line = {line}",
                f"year = {year}",
                f"year = {year} AND value % 10 = 3",
                f"year BETWEEN {year} AND {year + 1} AND topic = {topic}",
                f"value > {dice.randrange(4294967296)} AND year = {year}",
                f"share BETWEEN 0.5 AND 0.{50 + dice.randrange(40)} AND region < 20",
            ]
        )
