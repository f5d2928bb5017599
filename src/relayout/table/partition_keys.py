"""Partition keys: which partition of which spec a file belongs to, and the specs as their fields' ids tell them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from relayout.table.evidence import Value
from relayout.table.transforms import Transform


@dataclass(frozen=True, slots=True)
class SpecField:
    """One field of a partition spec; ids stay what they are through renames."""

    field_id: int
    source_id: int
    name: str
    transform: Transform


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A partition spec; one whose fields are all void is unpartitioned, as one without fields is."""

    spec_id: int
    fields: tuple[SpecField, ...] = ()

    @property
    def is_unpartitioned(self) -> bool:
        return all(item.transform.name == "void" for item in self.fields)


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """A spec and the values of its fields, None for an unpartitioned spec.

    Keys are equal when the values are the same bits: 0.0 and -0.0 are two partitions, NaN is one.
    """

    spec_id: int
    partition: tuple[Value, ...] | None = field(default=None, compare=False)
    _bits: tuple[Any, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.partition is not None:
            object.__setattr__(self, "_bits", tuple(_bits(value) for value in self.partition))

    @classmethod
    def of(cls, spec: Any, values: Sequence[Value]) -> PartitionKey:
        """The key of a file; whether it is unpartitioned is for its own spec to say, not for the table's default."""
        return cls(spec.spec_id, None if _unpartitioned(spec) else tuple(values))

    @classmethod
    def from_manifest_entry(cls, entry: Any, spec: Any) -> PartitionKey:
        """The key of a manifest's entry, from PyIceberg's objects or our own."""
        record = getattr(entry, "data_file", entry).partition
        return cls.of(spec, tuple(record[place] for place in range(len(record))))

    def sort_key(self) -> tuple[int, str]:
        """Spec first, then a text of the values: the same order on every run."""
        return self.spec_id, repr(self._bits)


def _unpartitioned(spec: Any) -> bool:
    if isinstance(spec, PartitionSpec):
        return spec.is_unpartitioned
    return all(str(item.transform) == "void" for item in spec.fields)


def _bits(value: Value) -> Any:
    if isinstance(value, float):
        return struct.pack(">d", float("nan") if value != value else value)
    return (type(value).__name__, value) if isinstance(value, bool) else value
