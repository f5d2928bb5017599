"""Tables as facts, read through PyIceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.table.facts import Snapshot, Spec, TableFacts
from relayout.table.layouts import PartitionField, SortField
from relayout.table.names import TableName
from relayout.table.schemas import Column
from relayout.table.types import text_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


def facts_of(table: Table, name: TableName) -> TableFacts:
    """The facts of a loaded table."""
    metadata = table.metadata
    schema = metadata.schema()
    return TableFacts(
        name=name,
        uuid=str(metadata.table_uuid),
        location=metadata.location,
        metadata_location=table.metadata_location,
        format_version=metadata.format_version,
        schema=tuple(Column(field.name, text_of(field.field_type), field.required) for field in schema.fields),
        specs=tuple(
            Spec(
                spec.spec_id,
                tuple(
                    PartitionField(schema.find_column_name(field.source_id) or "", str(field.transform), field.name)
                    for field in spec.fields
                ),
            )
            for spec in metadata.partition_specs
        ),
        default_spec_id=metadata.default_spec_id,
        sort=_sort_of(metadata),
        ancestry=_ancestry_of(metadata),
        properties=dict(metadata.properties),
    )


def _sort_of(metadata: TableMetadata) -> tuple[SortField, ...]:
    schema = metadata.schema()
    order = next((order for order in metadata.sort_orders if order.order_id == metadata.default_sort_order_id), None)
    return tuple(
        SortField(
            schema.find_column_name(field.source_id) or "",
            descending=str(field.direction).lower().startswith("desc"),
            nulls_first="first" in str(field.null_order).lower(),
        )
        for field in (order.fields if order else ())
    )


def _ancestry_of(metadata: TableMetadata) -> tuple[Snapshot, ...]:
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    found: list[Snapshot] = []
    next_id = metadata.current_snapshot_id
    while next_id is not None and next_id in known:
        snapshot = known[next_id]
        summary = snapshot.summary
        found.append(
            Snapshot(
                snapshot.snapshot_id,
                snapshot.parent_snapshot_id,
                snapshot.sequence_number or 0,
                snapshot.timestamp_ms,
                summary.operation.value if summary else "",
                dict(summary.additional_properties) if summary else {},
            )
        )
        next_id = snapshot.parent_snapshot_id
    return tuple(found)


def fields_by_name(table: Table) -> dict[str, int]:
    """Ids of all fields by their full names, nested ones too."""
    from pyiceberg.schema import index_name_by_id

    return {name: field_id for field_id, name in index_name_by_id(table.schema()).items()}
