"""What a plan says of the alternates of one table, as values; a plan of tables carries them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Step(StrEnum):
    """What happens to an alternate; one that is kept serves until its successor is complete."""

    NONE = "none"
    CREATE = "create"
    REFRESH = "refresh"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class AlternatePlan:
    """One alternate; `table` is empty until it is made, `stale` says which of its rows are due.

    `size_bytes` is what it takes or is expected to take, `amplification` that by the bytes of the base.
    `helps` are predicates that it will speed up; `replacement` is YAML to put in place of what is refused.
    """

    name: str
    table: str
    layout: str
    step: Step
    reason: str = ""
    stale: tuple[str, ...] = ()
    size_bytes: int | None = None
    amplification: float | None = None
    helps: tuple[str, ...] = ()
    replacement: str = ""

    @property
    def has_work(self) -> bool:
        return self.step in (Step.CREATE, Step.REFRESH)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> AlternatePlan:
        lists = {name: tuple(told[name]) for name in ("stale", "helps")}
        return cls(**{**told, **lists, "step": Step(told["step"])})
