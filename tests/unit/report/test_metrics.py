"""A run as metrics, read back by Prometheus' own parser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from relayout.commit.receipts import BatchReceipt, Outcome, Receipt, TableReceipt
from relayout.report.json_text import json_text
from relayout.report.metrics import metrics_json, metrics_text
from relayout.table.batches import BatchKey

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def batch(year: int, outcome: Outcome = Outcome.DONE, **told: Any) -> BatchReceipt:
    return BatchReceipt(BatchKey((("year", year),)), "load", outcome, **told)


def loaded(year: int, seconds: float, source_files: int, source_bytes: int) -> BatchReceipt:
    return batch(
        year, rows=10, files=2, size_bytes=500, source_files=source_files, source_bytes=source_bytes, seconds=seconds
    )


RECEIPT = Receipt(
    "2afb",
    "6f0c",
    (
        TableReceipt(
            "regional_income",
            "none",
            (
                loaded(2019, 60.0, 1_000, 1_000_000_000),
                loaded(2020, 60.5, 1_001, 1_000_000_001),
                batch(2021, Outcome.FAILED, seconds=600.0, source_files=7, source_bytes=9),
                batch(2022, Outcome.SKIPPED),
                BatchReceipt(BatchKey(), "rewrite", Outcome.DONE, 5, 1, 100, 0, 100, 900.0),
            ),
            130.0,
            bad_files=(("a.json", "cut"),),
        ),
        TableReceipt("broken", "none", (), 0.5, error="what   no"),
    ),
    372.0,
)


def parsed(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, labels: Mapping[str, str] | None = None) -> float:
    return samples[name, frozenset((labels or {}).items())]


def test_the_run_can_be_read_back() -> None:
    samples = parsed(metrics_text(RECEIPT))
    income = {"table": "regional_income"}
    assert value(samples, "relayout_run_complete") == 0
    assert value(samples, "relayout_run_seconds") == 372
    assert [
        value(samples, "relayout_run_batches", {**income, "outcome": outcome})
        for outcome in ("done", "failed", "skipped")
    ] == [3, 1, 1]
    assert value(samples, "relayout_run_rows", income) == 25
    assert value(samples, "relayout_run_files", income) == 5
    assert value(samples, "relayout_run_bytes", income) == 1_100
    assert value(samples, "relayout_run_table_seconds", income) == 130
    assert value(samples, "relayout_run_bad_files", income) == 1
    assert value(samples, "relayout_run_table_error", income) == 0
    assert value(samples, "relayout_run_table_error", {"table": "broken"}) == 1


def test_batches_are_held_against_their_targets() -> None:
    samples = parsed(metrics_text(RECEIPT))
    for metric, target in (("seconds", 60.0), ("source_files", 1_000.0), ("source_bytes", 1_000_000_000.0)):
        name = f"relayout_run_batch_{metric}"
        assert value(samples, f"relayout_run_target_batch_{metric}") == target
        within = value(samples, f"{name}_bucket", {"table": "regional_income", "le": str(target)})
        assert (within, value(samples, f"{name}_count", {"table": "regional_income"})) == (1, 2)
    assert value(samples, "relayout_run_batch_seconds_sum", {"table": "regional_income"}) == 120.5


def test_amplification_is_what_was_written_by_what_was_read() -> None:
    samples = parsed(metrics_text(RECEIPT))
    assert value(samples, "relayout_run_amplification", {"table": "regional_income"}) == 1_000 / 2_000_000_001
    assert ("relayout_run_amplification", frozenset({("table", "broken")})) not in samples
    assert value(samples, "relayout_run_target_amplification") == 3


def test_a_run_without_tables_is_complete() -> None:
    assert value(parsed(metrics_text(Receipt("p", "r", (), 0.0))), "relayout_run_complete") == 1


def test_any_table_name_is_a_label() -> None:
    odd = Receipt("p", "r", (TableReceipt('a"b\\c\nd\udcff', "none", (), 1.0),), 1.0)
    assert value(parsed(metrics_text(odd)), "relayout_run_table_seconds", {"table": 'a"b\\c\\nd\\xff'}) == 1


def test_the_document_holds_the_same_samples() -> None:
    document = json.loads(json_text(metrics_json(RECEIPT)))
    told = {
        (sample["name"], frozenset(sample["labels"].items())): sample["value"]
        for metric in document["metrics"]
        for sample in metric["samples"]
    }
    assert (document["schema"], document["kind"]) == (1, "metrics")
    assert told == parsed(metrics_text(RECEIPT))
