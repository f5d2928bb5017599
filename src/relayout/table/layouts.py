"""How the rows of a table lie in its files: partition fields and sort order, as declared or as a table has them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from relayout.errors import UsageError
from relayout.table.type_tree import Primitive, parse_node, text_of_node

_SUFFIXES = {"bucket": "bucket", "truncate": "trunc", "year": "year", "month": "month", "day": "day", "hour": "hour"}
_SIZED = re.compile(r"(?P<name>bucket|truncate)\s*[\[(]\s*(?P<size>[0-9]{1,10})\s*[\])]")
_PERIODS = {f"{period}s": period for period in ("year", "month", "day", "hour")}
_MOMENTS = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
_TAKES = {
    "bucket": _MOMENTS | {"int", "long", "decimal", "date", "time", "string", "uuid", "fixed", "binary"},
    "truncate": {"int", "long", "decimal", "string", "binary"},
    "year": _MOMENTS | {"date"},
    "month": _MOMENTS | {"date"},
    "day": _MOMENTS | {"date"},
    "hour": _MOMENTS,
}
_SORT = re.compile(
    r"(?P<column>`(?:[^`]|``)+`|.+?)(?:\s+(?P<way>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?",
    re.IGNORECASE | re.DOTALL,
)


def normal_transform(text: str) -> str:
    """A transform in Iceberg's own spelling; Spark's `bucket(16)` and `days` are understood."""
    name = text.strip().lower()
    name = _PERIODS.get(name, name)
    sized = _SIZED.fullmatch(name)
    if sized and 0 < int(sized["size"]) < 1 << 31:
        return f"{sized['name']}[{int(sized['size'])}]"
    if name in ("identity", "void") or (name in _SUFFIXES and name not in ("bucket", "truncate")):
        return name
    raise UsageError(
        f"{text!r} is not a partition transform",
        next="use identity, bucket[N], truncate[N], year, month, day or hour",
    )


def transform_result_type(transform: str, type: str) -> str:
    """The type of partition values; UsageError when the transform does not take the type."""
    name = normal_transform(transform).partition("[")[0]
    node = parse_node(type)
    if not isinstance(node, Primitive) or (name in _TAKES and node.name not in _TAKES[name]):
        raise UsageError(
            f"{transform} cannot partition a column of type {text_of_node(node)}",
            next="choose another transform, or another column",
        )
    if name == "day":
        # The specification says int; every engine, and so every manifest, says date.
        return "date"
    return text_of_node(node) if name in ("identity", "truncate", "void") else "int"


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One level of a partition spec; the transform is in normal form and `name` is Iceberg's unless given."""

    column: str
    transform: str = "identity"
    name: str = ""

    def __post_init__(self) -> None:
        transform = normal_transform(self.transform)
        object.__setattr__(self, "transform", transform)
        if not self.name:
            suffix = "null" if transform == "void" else _SUFFIXES.get(transform.partition("[")[0], "")
            object.__setattr__(self, "name", f"{self.column}_{suffix}" if suffix else self.column)

    def __str__(self) -> str:
        return self.column if self.transform == "identity" else f"{self.transform}({self.column})"


@dataclass(frozen=True, slots=True)
class SortField:
    """One level of a sort order."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        nulls = "" if self.nulls_first != self.descending else f" nulls {'first' if self.nulls_first else 'last'}"
        return f"{self.column}{' desc' if self.descending else ''}{nulls}"

    @classmethod
    def parse(cls, text: str) -> SortField:
        """`column [asc|desc] [nulls first|last]`; nulls default to Iceberg's side, first if ascending."""
        found = _SORT.fullmatch(text.strip())
        if found is None:
            raise UsageError(
                f"{text!r} is not a sort column", next="write a column name, with desc behind it if wanted"
            )
        column = found["column"]
        if column.startswith("`"):
            column = column[1:-1].replace("``", "`")
        descending = (found["way"] or "").lower() == "desc"
        nulls_first = found["nulls"].lower() == "first" if found["nulls"] else not descending
        return cls(column, descending, nulls_first)


@dataclass(frozen=True, slots=True)
class Layout:
    """Partition fields from the outside in, then the order of rows within files; no partition name occurs twice."""

    partition: tuple[PartitionField, ...] = ()
    sort: tuple[SortField, ...] = ()

    def __post_init__(self) -> None:
        for kind, names in (
            ("partition field", [field.name for field in self.partition]),
            ("sort column", [field.column for field in self.sort]),
        ):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise UsageError(f"{kind} {twice[0]!r} occurs twice in a layout", next="name each one once")

    @property
    def identity_columns(self) -> tuple[str, ...]:
        """Columns whose values are the partition values themselves."""
        return tuple(field.column for field in self.partition if field.transform == "identity")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns the layout needs, each once, in order."""
        return tuple(dict.fromkeys([level.column for level in self.partition] + [level.column for level in self.sort]))


class _DeclaredKey(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def transform(self) -> str: ...


class Declared(Protocol):
    """What the configuration says of a table or an alternate, as far as its layout goes."""

    @property
    def partitions(self) -> Sequence[_DeclaredKey]: ...
    @property
    def sort(self) -> Sequence[str]: ...


def layout_of(declared: Declared) -> Layout:
    """The layout of a configured table or alternate."""
    return Layout(
        tuple(PartitionField(key.name, key.transform) for key in declared.partitions),
        tuple(SortField.parse(text) for text in declared.sort),
    )


def describe(layout: Layout) -> str:
    """`year / bucket[16](geo_fips), sorted by geo_fips, year desc`."""
    text = " / ".join(str(field) for field in layout.partition) or "unpartitioned"
    return text + (", sorted by " + ", ".join(str(field) for field in layout.sort) if layout.sort else "")


def without_level_order(layout: Layout) -> Layout:
    """The layout with its partition levels in one fixed order, because no reader can tell their order."""
    return Layout(tuple(sorted(layout.partition, key=str)), layout.sort)


def same_layout(actual: Layout, declared: Layout) -> bool:
    """Whether rows lie in the same way: the order of partition levels does not matter to a reader, sort order does."""

    def levels(layout: Layout) -> set[tuple[str, str]]:
        return {(field.column, field.transform) for field in layout.partition}

    return levels(actual) == levels(declared) and actual.sort == declared.sort
