"""The proof that a rewrite changed no row: what went in, less what deletes take, is what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class NotProven(Exception):
    """What was written is not what was read."""


@dataclass(frozen=True, slots=True)
class Before:
    """What must come out: live rows, and their nulls by field id where every footer counts them."""

    rows: int
    deleted: int
    nulls: Mapping[int, int]

    def to_json(self) -> dict[str, Any]:
        nulls = {str(field_id): count for field_id, count in self.nulls.items()}
        return {"rows": self.rows, "deleted": self.deleted, "nulls": nulls}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Before:
        nulls = {int(field_id): count for field_id, count in told["nulls"].items()}
        return cls(told["rows"], told["deleted"], nulls)


def prove(before: Before, outputs: Sequence[Mapping[str, Any]]) -> None:
    """Raise NotProven unless rows, and nulls of every column that both sides count, are the same."""
    rows = sum(int(output["record-count"]) for output in outputs)
    if rows != before.rows:
        raise NotProven(f"{before.rows} live rows were read ({before.deleted} more are deleted), but {rows} written")
    for field_id, expected in before.nulls.items():
        after = _nulls(outputs, field_id)
        if after is not None and after != expected:
            raise NotProven(f"field {field_id} had {expected} nulls before and has {after} after")


def _nulls(outputs: Sequence[Mapping[str, Any]], field_id: int) -> int | None:
    total = 0
    for output in outputs:
        told = output.get("null-value-counts", {"keys": [], "values": []})
        counts = dict(zip(told["keys"], told["values"], strict=True))
        if field_id not in counts:
            return None
        total += counts[field_id]
    return total
