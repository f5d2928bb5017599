"""What may be asked of a rewrite, by the names that Iceberg's own action uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from relayout.compact.plan import Arrangement, JobOrder, Mode
from relayout.errors import UsageError
from relayout.table.predicates import Predicate
from relayout.table.where import parse_where

DEFAULT_TARGET_BYTES = 512 << 20
TARGET_PROPERTY = "write.target-file-size-bytes"
_SMALL, _LARGE = 0.75, 1.8
"""Files below and above these shares of the target size are rewritten; Iceberg's own defaults."""


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """How files are chosen and grouped; sizes that are None follow from the target size.

    `max_file_group_input_files` is bounded, unlike in Iceberg, so that no group outgrows the planner's memory.
    `prune_by_statistics` leaves files out that cannot match by their bounds; without it that is only noted.
    """

    partition_filter: Predicate | None = None
    case_sensitive: bool = True
    strict: bool = False
    prune_by_statistics: bool = False
    mode: Mode = Mode.KEEP_SPEC
    output_spec_id: int | None = None
    target_file_size_bytes: int | None = None
    min_file_size_bytes: int | None = None
    max_file_size_bytes: int | None = None
    min_input_files: int = 5
    rewrite_all: bool = False
    max_file_group_size_bytes: int = 100 << 30
    max_file_group_input_files: int = 10_000
    delete_file_threshold: int | None = None
    delete_ratio_threshold: float = 0.3
    rewrite_job_order: JobOrder = JobOrder.NONE
    arrangement: Arrangement = Arrangement.BINPACK
    arrange_by: tuple[str, ...] = ()

    @classmethod
    def of(cls, told: Mapping[str, Any] | RewriteOptions | None) -> RewriteOptions:
        """Options by name, with hyphens or underscores, numbers also as text; unknown ones are refused."""
        if isinstance(told, RewriteOptions):
            return told
        values: dict[str, Any] = {}
        known = {field.name: field for field in fields(cls)}
        for key, value in (told or {}).items():
            name = _ALIASES.get(key.replace("-", "_"), key.replace("-", "_"))
            if name not in known:
                raise _unknown(key, list(known))
            values[name] = _converted(name, str(known[name].type), value)
        return cls(**values)

    def sized(self, properties: Mapping[str, str]) -> RewriteOptions:
        """The options with every size settled, for a table with these properties; sizes out of order are refused."""
        target = self.target_file_size_bytes
        if target is None:
            target = _positive(TARGET_PROPERTY, properties.get(TARGET_PROPERTY, str(DEFAULT_TARGET_BYTES)))
        low = int(target * _SMALL) if self.min_file_size_bytes is None else self.min_file_size_bytes
        high = int(target * _LARGE) if self.max_file_size_bytes is None else self.max_file_size_bytes
        if not low < target < high:
            raise UsageError(
                f"the target size of {target} bytes does not lie between min-file-size-bytes {low} "
                f"and max-file-size-bytes {high}",
                where="options",
                next="leave the smallest and the largest size out, or set them below and above the target",
            )
        return replace(self, target_file_size_bytes=target, min_file_size_bytes=low, max_file_size_bytes=high)

    @property
    def target_bytes(self) -> int:
        return self.target_file_size_bytes or DEFAULT_TARGET_BYTES

    @property
    def smallest_bytes(self) -> int:
        return self.min_file_size_bytes or 0

    @property
    def largest_bytes(self) -> int:
        return self.max_file_size_bytes or int(self.target_bytes * _LARGE)


_ALIASES = {"where": "partition_filter", "target_spec_id": "output_spec_id", "job_order": "rewrite_job_order"}


def _unknown(key: str, names: list[str]) -> UsageError:
    alike = get_close_matches(key.replace("-", "_"), names, 1)
    return UsageError(
        f"{key!r} is not an option of a rewrite",
        where="options",
        next=f"did you mean {alike[0]!r}?" if alike else "there are " + ", ".join(names),
    )


def _converted(name: str, kind: str, value: Any) -> Any:
    try:
        match name:
            case "partition_filter":
                return parse_where(value) if isinstance(value, str) else value
            case "mode":
                return Mode(str(value).replace("_", "-"))
            case "rewrite_job_order":
                return JobOrder(str(value).replace("_", "-"))
            case "arrangement":
                return Arrangement(value)
            case "arrange_by":
                return tuple(value)
            case "delete_ratio_threshold":
                return _ratio(value)
            case _ if kind == "bool":
                return _boolean(value)
            case "output_spec_id":
                return None if value is None else _whole(value)
            case _:
                return None if value is None else _positive(name, value)
    except UsageError:
        raise
    except (ValueError, TypeError):
        raise UsageError(
            f"{value!r} does not fit the option {name!r}", where="options", next=_CHOICES.get(name, "write a number")
        ) from None


_CHOICES = {
    "mode": "write keep-spec or migrate",
    "rewrite_job_order": "write " + ", ".join(order.value for order in JobOrder),
    "arrangement": "write " + ", ".join(kind.value for kind in Arrangement),
    **dict.fromkeys(("case_sensitive", "strict", "prune_by_statistics", "rewrite_all"), "write true or false"),
    "delete_ratio_threshold": "write a number above 0 and up to 1",
}


def _boolean(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, bool):
        return value
    raise TypeError


def _whole(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
        raise TypeError
    return int(value)


def _positive(name: str, value: Any) -> int:
    number = _whole(value)
    if number < 1:
        raise UsageError(f"{name} is {number}", where="options", next="write a whole number of at least 1")
    return number


def _ratio(value: Any) -> float:
    number = float(value)
    if not 0 < number <= 1:
        raise ValueError
    return number
