"""Ingestion of about a gigabyte of JSON, a year at a time: by year, and by year and region."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from bench.income import Income
from bench.results import Result
from bench.rounds import Side, interleaved, medians
from bench.sides.ingestion import PEER, Loading

ROUNDS = 3
FULL = Income(years=10, regions=3_200, lines=31)
SMALL = Income(years=4, regions=320, lines=78)


def ingest_year(small: bool) -> Result:
    """One partition and one batch per year."""
    return _measured("ingest_year", SMALL if small else FULL, ["year"])


def ingest_year_region(small: bool) -> Result:
    """Still a batch per year, and a partition for each of 3,200 regions in it."""
    return _measured("ingest_year_region", SMALL if small else FULL, ["year", "geo_fips"])


def _measured(name: str, source: Income, partitions: Sequence[str]) -> Result:
    source.batches()
    samples = interleaved(sides(source, partitions), ROUNDS)
    seconds = medians(samples)
    return Result(
        name=name,
        ours_seconds=seconds["ours"],
        peer=PEER,
        peer_seconds=seconds["peer"],
        limit_seconds=seconds["limit"],
        rounds=ROUNDS,
        rows=source.rows,
        bytes=source.size_bytes,
        samples=samples,
        more={"batches": source.years, "partitions": source.years * (source.regions if len(partitions) > 1 else 1)},
    )


def sides(source: Income, partitions: Sequence[str]) -> Mapping[str, Side]:
    loading = Loading(source, partitions, os.cpu_count() or 1)
    return {"ours": loading.with_relayout, "peer": loading.with_spark, "limit": loading.with_duckdb}
