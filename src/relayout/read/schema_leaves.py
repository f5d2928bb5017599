"""The columns of a table that a filter can name, from its current schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from relayout.table.predicates import Leaf
from relayout.table.types import text_of

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField


def leaves_of(schema: Schema) -> tuple[Leaf, ...]:
    """Primitive columns, also inside structs; what lies in lists and maps has no one value per row."""
    return tuple(leaf for field in schema.fields for leaf, _ in _leaves(field, (), required=True))


def required_columns(schema: Schema) -> frozenset[int]:
    """Columns that cannot be null, because neither they nor what holds them may be."""
    return frozenset(
        leaf.field_id for field in schema.fields for leaf, required in _leaves(field, (), required=True) if required
    )


def _leaves(field: NestedField, above: tuple[str, ...], *, required: bool) -> Iterator[tuple[Leaf, bool]]:
    from pyiceberg.types import GeographyType, GeometryType, PrimitiveType, StructType

    path = (*above, field.name)
    required = required and field.required
    if isinstance(field.field_type, StructType):
        for inner in field.field_type.fields:
            yield from _leaves(inner, path, required=required)
    elif isinstance(field.field_type, PrimitiveType) and not isinstance(field.field_type, GeometryType | GeographyType):
        # Shapes have no order that a literal could be compared by.
        yield Leaf(field.field_id, path, text_of(field.field_type)), required
