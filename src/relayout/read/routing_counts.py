"""Routing counts of a namespace, summed up."""

from __future__ import annotations

from collections.abc import Mapping

from relayout.config import Config
from relayout.config.model import ROUTING_TABLE
from relayout.read.catalog import CatalogReader
from relayout.table.names import TableName
from relayout.table.routing_counts import RoutingCounts


def counts_by_alternate(config: Config, reader: CatalogReader) -> Mapping[str, RoutingCounts]:
    """Counts by the alternate's table; alternates that no query ever looked at are not there."""
    native = reader.load(TableName(tuple(config.namespace.split(".")), ROUTING_TABLE))
    if native is None or native.current_snapshot() is None:
        return {}
    found: dict[str, RoutingCounts] = {}
    for row in native.scan().to_arrow().to_pylist():
        del row["recorded_at_ms"]
        counts = RoutingCounts(**row)
        known = found.get(counts.layout)
        found[counts.layout] = counts if known is None else known.plus(counts)
    return found
