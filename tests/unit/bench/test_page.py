"""The performance page shows what results files say, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.page import documents_in, page
from bench.results import Result

MEASURED: dict[str, Any] = {
    "name": "ingest_year",
    "ours_seconds": 2.5,
    "peer": "Spark alone",
    "peer_seconds": 12.0,
    "ratio": 4.8,
    "limit_seconds": 2.0,
    "rounds": 3,
    "rows": 4_960_000,
    "bytes": 981_774_318,
    "versions": {"duckdb": "2.0.0"},
    "date": "2026-11-19",
}


def test_each_results_file_is_one_row_with_its_figures() -> None:
    assert "| `ingest_year` | 2.50 s | 12.00 s | 4.8 | 2.00 s | 0.80 | 4,960,000 | 982 MB |\n" in page([MEASURED])


def test_a_peer_that_did_not_finish_has_neither_time_nor_ratio() -> None:
    failed = MEASURED | {"peer_seconds": None, "ratio": None, "limit_seconds": None}
    assert "| `ingest_year` | 2.50 s | - | - | - | - | 4,960,000 | 982 MB |\n" in page([failed])


def test_keys_that_only_some_benchmarks_have_are_told_too() -> None:
    text = page([MEASURED | {"limit_bytes": 1_500_000_000, "peer_outcome": "killed"}])
    assert "| limit | 1.5 GB |\n" in text
    assert "| peer outcome | killed |\n" in text


def test_raw_seconds_of_every_round_are_shown() -> None:
    assert "| `ours` | 2.40, failed |\n" in page([MEASURED | {"samples": {"ours": [2.4, None]}}])


def test_the_order_of_the_files_changes_nothing() -> None:
    other = MEASURED | {"name": "zorder"}
    assert page([MEASURED, other]) == page([other, MEASURED])


def test_without_results_no_figure_is_written() -> None:
    assert page([]).endswith("\nNothing was measured yet.\n")


def test_what_is_measured_is_what_is_rendered(tmp_path: Path) -> None:
    result = Result("ingest_year", 2.5, "Spark alone", 12.0, 2.0, 3, 10, 1000, {"ours": [2.5]}, {"batches": 10})
    file = result.write(tmp_path)
    assert set(MEASURED) <= set(json.loads(file.read_text("utf-8")))
    assert "| `ingest_year` | 2.50 s | 12.00 s | 4.8 | 2.00 s | 0.80 | 10 | 1 kB |\n" in page(documents_in(tmp_path))
