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


def fields_by_name(table: Table, snapshot_id: int | None = None) -> dict[str, int]:
    """Ids of all fields by their full names, nested ones too, at present or as a snapshot has them."""
    from pyiceberg.schema import index_name_by_id

    schema = table.schema()
    snapshot = None if snapshot_id is None else table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is not None and snapshot.schema_id is not None:
        schema = table.schemas()[snapshot.schema_id]
    return {name: field_id for field_id, name in index_name_by_id(schema).items()}


def means_the_same(table: Table, snapshot_id: int) -> bool:
    """Whether a snapshot's columns still are what they were; whole new ones that are null in old rows may be there."""
    then, now = fields_by_name(table, snapshot_id), fields_by_name(table)
    columns = {name.partition(".")[0] for name in then}
    defaults = any(getattr(field, "initial_default", None) is not None for field in table.schema().fields)
    kept = {name: field_id for name, field_id in now.items() if name.partition(".")[0] in columns}
    return kept == then and (then == now or not defaults)
