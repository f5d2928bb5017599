"""Compaction and clustering of Iceberg tables against Iceberg's own action and DuckDB alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.deletes import add_deletes, live_rows
from bench.results import Result
from bench.rounds import interleaved, medians
from bench.sides.rewriting import Rewriting
from bench.small_files import SmallFiles

ROUNDS = 3
PEER = "Iceberg 1.12's rewrite_data_files"
ONE_TABLE, SMALL_TABLE = SmallFiles(20_000_000, 500), SmallFiles(2_000_000, 50)
PARTITIONED, SMALL_PARTITIONED = SmallFiles(5_000_000, 5_000, 1_000), SmallFiles(500_000, 500, 100)
WITH_DELETES, SMALL_WITH_DELETES = SmallFiles(4_000_000, 100), SmallFiles(400_000, 20)


def compact_binpack(small: bool) -> Result:
    """500 files of about a megabyte become four."""
    return _measured("compact_binpack", Rewriting(SMALL_TABLE if small else ONE_TABLE, _target(small)), limit=True)


def compact_many_partitions(small: bool) -> Result:
    """5,000 files in 1,000 partitions become one each."""
    source = SMALL_PARTITIONED if small else PARTITIONED
    return _measured("compact_many_partitions", Rewriting(source, 128 << 20), limit=True)


def zorder(small: bool) -> Result:
    """Two columns, one of them skewed."""
    return _curve("zorder", small)


def hilbert(small: bool) -> Result:
    """The same along a Hilbert curve by rank."""
    return _curve("hilbert", small)


def compact_deletes(small: bool) -> Result:
    """2,000 position and 2,000 equality delete files are applied and go."""
    count = 200 if small else 2_000
    rewriting = Rewriting(
        SMALL_WITH_DELETES if small else WITH_DELETES,
        _target(small),
        after=lambda lake, table: add_deletes(lake, table, count),
        checksum=live_rows,
    )
    return _measured("compact_deletes", rewriting, limit=False, more={"delete_files": 2 * count})


def _curve(name: str, small: bool) -> Result:
    source = SMALL_TABLE if small else ONE_TABLE
    rewriting = Rewriting(source, _target(small), name, ("customer_id", "event_date"))
    return _measured(name, rewriting, limit=False)


def _target(small: bool) -> int:
    return (16 if small else 128) << 20


def _measured(name: str, rewriting: Rewriting, *, limit: bool, more: Mapping[str, Any] | None = None) -> Result:
    source = rewriting.source
    source.made()
    sides = {"ours": rewriting.with_relayout, "peer": rewriting.with_iceberg}
    if limit:
        sides["limit"] = rewriting.with_duckdb
    samples = interleaved(sides, ROUNDS)
    seconds = medians(samples)
    return Result(
        name=name,
        ours_seconds=seconds["ours"],
        peer=PEER,
        peer_seconds=seconds["peer"],
        limit_seconds=seconds.get("limit"),
        rounds=ROUNDS,
        rows=source.rows,
        bytes=source.size_bytes,
        samples=samples,
        more={"files": source.files, "partitions": source.partitions, **(more or {})},
    )
