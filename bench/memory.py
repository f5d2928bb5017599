"""Ingestion of input that is more than five times the memory that the whole process tree may take."""

from __future__ import annotations

from pathlib import Path

from bench.income import Income
from bench.places import fresh_folder
from bench.process_tree import Watched, run_within
from bench.results import Result
from bench.sides.bounded import SESSION
from bench.sides.checksum import Checksum, of_sources, of_table
from bench.sides.ingestion import ALL_COLUMNS, PEER, TABLE
from bench.sides.lakes import resting_lake_in

LIMIT_BYTES = 1_500_000_000
FULL = Income(years=5, regions=3_200, lines=480)
SMALL = Income(years=2, regions=320, lines=78)


def ingest_memory(small: bool) -> Result:
    """Batches that are each as large as all the memory there is, driver and workers together."""
    source = SMALL if small else FULL
    source.batches()
    if not small and source.size_bytes < 5 * LIMIT_BYTES:
        raise AssertionError(f"{source.size_bytes} bytes are less than five times {LIMIT_BYTES}")
    expected = of_sources(source, ALL_COLUMNS)
    watched = {}
    for side in ("ours", "peer"):
        with fresh_folder(f"memory-{side}") as folder:
            watched[side] = _watched(side, folder, source, expected)
    ours, peer = watched["ours"], watched["peer"]
    if not ours.passed:
        raise AssertionError(f"relayout {ours.outcome}; it held {ours.peak_bytes} bytes of {LIMIT_BYTES}")
    return Result(
        name="ingest_memory",
        ours_seconds=_seconds(ours),
        peer=PEER,
        peer_seconds=_seconds(peer) if peer.passed else None,
        limit_seconds=None,
        rounds=1,
        rows=source.rows,
        bytes=source.size_bytes,
        samples={side: [_seconds(ended)] for side, ended in watched.items() if ended.passed},
        more={
            "memory_limit_bytes": LIMIT_BYTES,
            "ours_peak_bytes": ours.peak_bytes,
            "peer_peak_bytes": peer.peak_bytes,
            "peer_outcome": peer.outcome,
            "batches": source.years,
            "session": dict(SESSION),
        },
    )


def _watched(side: str, folder: Path, source: Income, expected: Checksum) -> Watched:
    size = [str(number) for number in (source.years, source.regions, source.lines)]
    ended = run_within(["bench.sides.bounded", side, str(folder), *size], LIMIT_BYTES)
    print(f"  {side} {ended.outcome}, at most {ended.peak_bytes / 1e6:,.0f} MB", flush=True)
    if ended.passed:
        made = of_table(resting_lake_in(folder, {}).table(TABLE), ALL_COLUMNS)
        if made != expected:
            raise AssertionError(f"{side} made {made}, and the source holds {expected}")
    return ended


def _seconds(ended: Watched) -> float:
    return float(ended.output.rsplit("seconds ", 1)[-1])
