"""Ingestion of about a gigabyte of JSON, a year at a time: by year, and by year and region."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bench.income import Income, size_bytes
from bench.results import Result
from bench.rounds import interleaved, medians
from bench.sides.ingestion import PEER, Loading

ROUNDS = 3
FULL = Income(years=10, regions=3_200, lines=31)
SMALL = Income(years=4, regions=320, lines=78)
WARM_UP = Income(years=2, regions=100, lines=10)


def ingest_year(small: bool) -> Result:
    """One partition and one batch per year."""
    return _measured("ingest_year", small, ["year"])


def ingest_year_region(small: bool) -> Result:
    """Still a batch per year, and a partition for each of 3,200 regions in it."""
    return _measured("ingest_year_region", small, ["year", "geo_fips"])


def _measured(name: str, small: bool, partitions: Sequence[str]) -> Result:
    source = SMALL if small else FULL
    interleaved(_sides(WARM_UP, partitions), 1)
    samples = interleaved(_sides(source, partitions), ROUNDS)
    seconds = medians(samples)
    return Result(
        name=name,
        ours_seconds=seconds["ours"],
        peer=PEER,
        peer_seconds=seconds["peer"],
        limit_seconds=seconds["limit"],
        rounds=ROUNDS,
        rows=source.rows,
        bytes=size_bytes(source.batches()),
        samples=samples,
        more={"batches": source.years, "partitions": source.years * (source.regions if len(partitions) > 1 else 1)},
    )


def _sides(source: Income, partitions: Sequence[str]) -> dict[str, object]:
    loading = Loading(source, source.batches(), partitions, os.cpu_count() or 1)
    return {"ours": loading.with_relayout, "peer": loading.with_spark, "limit": loading.with_duckdb}
