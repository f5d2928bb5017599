"""What a table is at one moment, as values: schema, specs, snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relayout.table.layouts import Layout, PartitionField, SortField
from relayout.table.names import TableName
from relayout.table.schemas import TableSchema

MANAGED = "relayout.managed"
"""Table property of tables that relayout made; only these are ever proposed to be dropped."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot as the metadata describes it."""

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    operation: str
    summary: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Spec:
    """One partition spec; fields of dropped columns have an empty column name."""

    spec_id: int
    fields: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table's metadata; `ancestry` starts with the current snapshot and ends where history was expired."""

    name: TableName
    uuid: str
    location: str
    metadata_location: str
    format_version: int
    schema: TableSchema
    specs: tuple[Spec, ...]
    default_spec_id: int
    sort: tuple[SortField, ...]
    ancestry: tuple[Snapshot, ...]
    properties: Mapping[str, str]

    @property
    def current_snapshot_id(self) -> int | None:
        return self.ancestry[0].snapshot_id if self.ancestry else None

    @property
    def spec(self) -> Spec:
        return next(spec for spec in self.specs if spec.spec_id == self.default_spec_id)

    @property
    def layout(self) -> Layout:
        live = tuple(field for field in self.spec.fields if field.transform != "void")
        return Layout(live, self.sort)

    @property
    def is_managed(self) -> bool:
        return self.properties.get(MANAGED) == "true"

    def type_of(self, column: str) -> str:
        return next(item.type for item in self.schema if item.name == column)
