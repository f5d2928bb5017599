"""One run as metrics: for Prometheus' text file collector, and as JSON.

Every number is about the last run and starts anew with each. Duration and size of batches are histograms in which the
targets are bounds, so that the share of batches within them can be read off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from relayout.commit.receipts import BatchReceipt, Outcome, Receipt, TableReceipt
from relayout.ingest.advice import LARGEST_BATCH_BYTES, LARGEST_BATCH_FILES
from relayout.report.printable import printable
from relayout.report.targets import AMPLIFICATION_TARGET, BATCH_SECONDS_TARGET, loaded


def _amplification(table: TableReceipt) -> float | None:
    read = sum(batch.source_bytes for batch in loaded(table))
    return sum(batch.size_bytes for batch in loaded(table)) / read if read else None


_RUN: tuple[tuple[str, str, Callable[[Receipt], float]], ...] = (
    ("complete", "1 if nothing failed, no source file was bad and no table was left aside", lambda run: run.complete),
    ("seconds", "Wall time of the run", lambda run: run.seconds),
    ("target_batch_seconds", "A batch should take less", lambda _: BATCH_SECONDS_TARGET),
    ("target_batch_source_files", "A batch should read fewer files", lambda _: LARGEST_BATCH_FILES),
    ("target_batch_source_bytes", "A batch should read fewer bytes", lambda _: LARGEST_BATCH_BYTES),
    ("target_amplification", "A table should have a lower amplification", lambda _: AMPLIFICATION_TARGET),
)
_TABLE: tuple[tuple[str, str, Callable[[TableReceipt], float | None]], ...] = (
    ("table_seconds", "Wall time of the table", lambda table: table.seconds),
    ("table_error", "1 if the table could not be worked on", lambda table: bool(table.error)),
    ("bad_files", "Source files that could not be used", lambda table: len(table.bad_files)),
    ("rows", "Rows written", lambda table: sum(batch.rows for batch in table.batches)),
    ("files", "Data files written", lambda table: sum(batch.files for batch in table.batches)),
    ("bytes", "Bytes written", lambda table: sum(batch.size_bytes for batch in table.batches)),
    ("amplification", "Bytes written by bytes read, over the batches loaded from sources", _amplification),
)
_BATCH: tuple[tuple[str, str, tuple[int, ...], Callable[[BatchReceipt], float]], ...] = (
    (
        "batch_seconds",
        "Wall time of batches loaded from sources",
        (1, 5, 10, 30, BATCH_SECONDS_TARGET, 300, 1800),
        lambda batch: batch.seconds,
    ),
    (
        "batch_source_files",
        "Source files of batches loaded",
        (1, 10, 100, LARGEST_BATCH_FILES, 10_000),
        lambda batch: batch.source_files,
    ),
    (
        "batch_source_bytes",
        "Source bytes of batches loaded",
        (1_000_000, 10_000_000, 100_000_000, LARGEST_BATCH_BYTES, 10_000_000_000),
        lambda batch: batch.source_bytes,
    ),
)


def metrics_text(receipt: Receipt) -> str:
    """The run in Prometheus' text format; write it beside the collector's folder and rename it into place."""
    registry = CollectorRegistry()
    registry.register(_RunCollector(receipt))
    return generate_latest(registry).decode("utf-8")


def metrics_json(receipt: Receipt) -> dict[str, Any]:
    """The same metrics as a document."""
    families = [
        {
            "name": family.name,
            "help": family.documentation,
            "type": family.type,
            "samples": [
                {"name": sample.name, "labels": dict(sample.labels), "value": sample.value} for sample in family.samples
            ],
        }
        for family in _families(receipt)
    ]
    return {"schema": 1, "kind": "metrics", "metrics": families}


class _RunCollector(Collector):
    """Hands a registry the metrics of one receipt."""

    def __init__(self, receipt: Receipt) -> None:
        self._receipt = receipt

    def collect(self) -> Iterable[Metric]:
        return _families(self._receipt)


def _families(receipt: Receipt) -> Iterator[Metric]:
    for name, what, of_run in _RUN:
        yield GaugeMetricFamily(f"relayout_run_{name}", f"{what}.", float(of_run(receipt)))
    batches = GaugeMetricFamily("relayout_run_batches", "Batches by outcome.", labels=("table", "outcome"))
    for table in receipt.tables:
        for outcome in Outcome:
            batches.add_metric((printable(table.table), outcome.value), sum(1 for _ in table.of(outcome)))
    yield batches
    for name, what, of_table in _TABLE:
        gauge = GaugeMetricFamily(f"relayout_run_{name}", f"{what}.", labels=("table",))
        for table in receipt.tables:
            if (value := of_table(table)) is not None:
                gauge.add_metric((printable(table.table),), float(value))
        yield gauge
    for name, what, bounds, of_batch in _BATCH:
        histogram = HistogramMetricFamily(f"relayout_run_{name}", f"{what}.", labels=("table",))
        for table in receipt.tables:
            values = [float(of_batch(batch)) for batch in loaded(table)]
            counts = [(str(float(bound)), float(sum(value <= bound for value in values))) for bound in bounds]
            histogram.add_metric((printable(table.table),), [*counts, ("+Inf", float(len(values)))], sum(values))
        yield histogram
