"""Schemas of sources and tables: what many files add up to, and how a table must change to hold it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from relayout.errors import SchemaConflict
from relayout.table.types import evolved, merged, parse_type, with_sorted_fields

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Column:
    """A name and its type text, which is made canonical."""

    name: str
    type: str
    required: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", parse_type(self.type))


TableSchema = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class TypeConflict:
    """A column that files hold with types that do not go together; each type with the first source that has it."""

    column: str
    types: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"column {self.column!r} is " + ", but ".join(f"{type} in {source}" for type, source in self.types)


@dataclass(frozen=True, slots=True)
class MergedSchema:
    """What sources add up to, by name; columns in conflict are left out of `columns`.

    A column without any value has type `null`; `types.without_null` settles it.
    """

    columns: TableSchema
    conflicts: tuple[TypeConflict, ...] = ()


@dataclass(frozen=True, slots=True)
class Evolution:
    """What separates a table from a wanted schema.

    `added` and `widened` (name, old type, new type) are safe to apply; `missing` columns read as null;
    `incompatible` ones (name, the table's type, the wanted type) stop the work.
    """

    added: tuple[Column, ...] = ()
    widened: tuple[tuple[str, str, str], ...] = ()
    missing: tuple[str, ...] = ()
    incompatible: tuple[tuple[str, str, str], ...] = ()

    @property
    def changes_table(self) -> bool:
        return bool(self.added or self.widened)


def schema_hash(schema: Iterable[Column]) -> str:
    """16 hexadecimal digits; the same for any order of columns or fields, blind to what is required."""
    names_and_types = sorted((column.name, with_sorted_fields(column.type)) for column in schema)
    text = json.dumps(names_and_types, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def merged_schema(
    sources: Iterable[tuple[str, Sequence[Column | tuple[str, str]]]], declared: Mapping[str, str] = _NOTHING
) -> MergedSchema:
    """The union of many sources' columns by name, in order of appearance.

    Declared types win: such a column never conflicts, and it is there even if no source has it. Names that differ
    in case only raise SchemaConflict naming the sources.
    """
    seen: dict[str, dict[str, str]] = {name: {type: "the declared schema"} for name, type in declared.items()}
    order: dict[str, None] = {}
    # Sources by the thousand mostly look alike, so each distinct column list is gone through once.
    for columns, source in _first_of_each(sources).items():
        for name, type in columns:
            order.setdefault(name)
            if name not in declared:
                seen.setdefault(name, {}).setdefault(type, source)
    for name in declared:
        order.setdefault(name)
    _refuse_look_alikes({name: next(iter(seen[name].values())) for name in order})
    settled: list[Column] = []
    conflicts: list[TypeConflict] = []
    for name in order:
        together = _merged_all(seen[name])
        if together is None:
            conflicts.append(TypeConflict(name, tuple((kind, at) for kind, at in seen[name].items() if kind != "null")))
        else:
            settled.append(Column(name, together))
    return MergedSchema(tuple(settled), tuple(conflicts))


def _first_of_each(
    sources: Iterable[tuple[str, Sequence[Column | tuple[str, str]]]],
) -> dict[tuple[tuple[str, str], ...], str]:
    first: dict[tuple[tuple[str, str], ...], str] = {}
    for source, columns in sources:
        first.setdefault(tuple(_name_and_type(column) for column in columns), source)
    return first


def _name_and_type(column: Column | tuple[str, str]) -> tuple[str, str]:
    return (column.name, column.type) if isinstance(column, Column) else column


def _merged_all(types: Iterable[str]) -> str | None:
    result: str | None = "null"
    for type in types:
        result = None if result is None else merged(result, type)
    return result


def _refuse_look_alikes(names: Mapping[str, str]) -> None:
    first: dict[str, str] = {}
    for name, source in names.items():
        other = first.setdefault(name.lower(), name)
        if other != name:
            raise SchemaConflict(
                f"columns {other!r} and {name!r} differ in case only, which Spark cannot tell apart",
                where=f"{other!r} in {names[other]}, {name!r} in {source}",
                next="spell the column in one way in all sources, or load them into separate tables",
            )


def evolution(current: TableSchema, wanted: TableSchema, *, wanted_is_text: bool = False) -> Evolution:
    """How a table must change to take rows of the wanted schema, by Iceberg's safe changes only.

    A wanted column whose type is still `null` fits everywhere and adds nothing. A required column of the table that
    is not wanted is incompatible (its wanted type is shown as `null`). `wanted_is_text`: see `types.evolved`.
    """
    have = {column.name: column for column in current}
    want = {column.name: column for column in wanted}
    _refuse_look_alikes({**dict.fromkeys(have, "the table"), **dict.fromkeys(want.keys() - have.keys(), "the sources")})
    widened: list[tuple[str, str, str]] = []
    incompatible: list[tuple[str, str, str]] = []
    missing: list[str] = []
    for name, column in have.items():
        if name not in want:
            if column.required:
                incompatible.append((name, column.type, "null"))
            else:
                missing.append(name)
            continue
        target = evolved(column.type, want[name].type, wanted_is_text=wanted_is_text)
        if target is None:
            incompatible.append((name, column.type, want[name].type))
        elif target != column.type:
            widened.append((name, column.type, target))
    added = tuple(column for name, column in want.items() if name not in have and column.type != "null")
    return Evolution(added, tuple(widened), tuple(missing), tuple(incompatible))
