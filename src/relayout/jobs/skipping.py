"""Measuring a layout: which share of a table's bytes given conditions need not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from relayout.compact.filters import MultiSpecFilter
from relayout.compact.skipping import Skipping, SkippingCount
from relayout.read.manifest_streams import PartitionTypes, live_entries, manifests_of, specs_of
from relayout.read.schema_leaves import leaves_of, required_columns
from relayout.table.partition_keys import PartitionKey
from relayout.table.predicates import bind
from relayout.table.where import parse_where

if TYPE_CHECKING:
    from pyiceberg.table import Table


def skipping_of(table: Table, conditions: Sequence[str]) -> tuple[Skipping, ...]:
    """One result per condition in Spark SQL, from metadata alone; delete files are not counted."""
    specs = specs_of(table)
    leaves = {leaf.field_id: leaf for leaf in leaves_of(table.schema())}
    required = required_columns(table.schema())
    filters = {
        where: MultiSpecFilter(
            bind(parse_where(where), tuple(leaves.values()), case_sensitive=False), specs, leaves, required
        )
        for where in conditions
    }
    count = SkippingCount(filters)
    columns = frozenset().union(*(condition.columns for condition in filters.values()))
    snapshot = table.current_snapshot()
    for manifest in manifests_of(table, snapshot, specs) if snapshot else ():
        if not manifest.holds_deletes:
            spec = specs[manifest.spec_id]
            for entry in live_entries(table.io, manifest, spec, PartitionTypes(), columns):
                count.add(entry, PartitionKey.of(spec, entry.partition))
    return count.finished(conditions)
