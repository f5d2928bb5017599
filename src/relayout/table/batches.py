"""Batch keys: which part of a table is loaded, tracked and replaced at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Scalar = str | int | float | bool | None
"""A key value in plain form: dates, timestamps and decimals are written as ISO text and digits."""


@dataclass(frozen=True, slots=True)
class BatchKey:
    """Column names and plain values, in the declared order of the columns; empty means the whole table."""

    items: tuple[tuple[str, Scalar], ...] = ()

    @classmethod
    def of(cls, columns: Iterable[str], values: Iterable[Scalar]) -> BatchKey:
        return cls(tuple(zip(columns, values, strict=True)))

    @classmethod
    def from_json(cls, text: str) -> BatchKey:
        decoded: Mapping[str, Scalar] = json.loads(text)
        return cls(tuple(decoded.items()))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)

    def to_json(self) -> str:
        """Canonical text: the same key always gives the same bytes."""
        return json.dumps(dict(self.items), ensure_ascii=False, separators=(",", ":"))

    def narrowed_to(self, columns: Iterable[str]) -> BatchKey:
        wanted = set(columns)
        return BatchKey(tuple(item for item in self.items if item[0] in wanted))

    def __str__(self) -> str:
        if not self.items:
            return "{all}"
        return "{" + ", ".join(f"{name}={'null' if value is None else value}" for name, value in self.items) + "}"

    def sort_key(self) -> tuple[tuple[int, str, float, str], ...]:
        """Numbers in numeric order, then text; nulls first."""
        return tuple(
            (0, "", 0.0, "")
            if value is None
            else (1, "", float(value), "")
            if isinstance(value, int | float)
            else (2, "", 0.0, value)
            for _, value in self.items
        )
