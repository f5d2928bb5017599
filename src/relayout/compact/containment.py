"""Moving files to another spec so that each new partition is written by one group only.

A file's rows lie in a box of target partitions: per target field a range of values. Files whose boxes may share a
partition belong into one group; groups are boxes that some field keeps apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayout.table.evidence import ANYTHING, Evidence, Value
from relayout.table.partition_keys import PartitionSpec, SpecField
from relayout.table.predicates import Leaf
from relayout.table.transforms import Function, evidence_of_function

_NULL: tuple[Any, ...] = (0,)
_BEYOND: tuple[Any, ...] = (2,)
"""Ends of a range: null lies below every value (1, v), and what is not known reaches beyond all of them."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The values of one target field that rows of a file may have, both ends included."""

    low: tuple[Any, ...]
    high: tuple[Any, ...]

    @property
    def is_one_value(self) -> bool:
        return self.low == self.high and self.low != _BEYOND

    @property
    def value(self) -> Value:
        return self.low[1] if len(self.low) == 2 else None

    def count(self) -> int | None:
        """How many values lie in it, None when nobody can tell."""
        if self.is_one_value:
            return 1
        low, high = self.low[1:], self.high[1:]
        if len(high) != 1 or not isinstance(high[0], int) or isinstance(high[0], bool):
            return None
        return high[0] - low[0] + 1 if low and isinstance(low[0], int) else None


Box = tuple[Span, ...]
"""One span per field of the target spec."""

EVERYWHERE = Span(_NULL, _BEYOND)


def box_of(target: PartitionSpec, leaves: Mapping[int, Leaf], known: Mapping[int, Evidence]) -> Box:
    """Where rows of a file go under the target spec, as far as this evidence on source columns tells."""
    return tuple(_span(item, leaves.get(item.source_id), known) for item in target.fields)


def _span(item: SpecField, leaf: Leaf | None, known: Mapping[int, Evidence]) -> Span:
    if item.transform.name == "void":
        return Span(_NULL, _NULL)
    if leaf is None or item.transform.name == "unknown":
        return EVERYWHERE
    source = known.get(leaf.field_id, ANYTHING)
    result = source
    if item.transform.name != "identity":
        result = evidence_of_function(Function(item.transform.name, item.transform.size), leaf.type, source)
    if not result.may_have_values:
        return Span(_NULL, _NULL)
    low, high = result.lower, result.upper
    if item.transform.name == "bucket" and low is None:
        low, high = 0, item.transform.size - 1
    return Span(
        _NULL if result.may_have_nulls or low is None else (1, low),
        # NaN is a partition of its own, above the numbers.
        _BEYOND if high is None or result.may_have_nans else (1, high),
    )


def components(boxes: Sequence[Box]) -> list[list[int]]:
    """Places of boxes, in groups that share no partition with each other, lowest first."""
    done: list[list[int]] = []
    open_groups = [list(range(len(boxes)))] if boxes else []
    while open_groups:
        group = open_groups.pop()
        parts = _parted(boxes, group)
        if len(parts) == 1:
            done.append(group)
        else:
            open_groups += parts
    for group in done:
        group.sort(key=lambda place: boxes[place])
    return sorted(done, key=lambda group: boxes[group[0]])


def _parted(boxes: Sequence[Box], group: list[int]) -> list[list[int]]:
    """The group cut where some field leaves a gap between its boxes."""
    for dimension in range(len(boxes[group[0]])):
        ordered = sorted(group, key=lambda place: boxes[place][dimension].low)
        parts = [[ordered[0]]]
        reach = boxes[ordered[0]][dimension].high
        for place in ordered[1:]:
            span = boxes[place][dimension]
            if span.low > reach:
                parts.append([place])
            else:
                parts[-1].append(place)
            reach = max(reach, span.high)
        if len(parts) > 1:
            return parts
    return [group]


def hull_of(boxes: Sequence[Box]) -> Box:
    """The smallest box around all of them."""
    return tuple(
        Span(min(span.low for span in spans), max(span.high for span in spans)) for spans in zip(*boxes, strict=True)
    )


def partitions_in(box: Box) -> int | None:
    """How many target partitions lie in a box at most; None when nobody can tell."""
    product = 1
    for span in box:
        count = span.count()
        if count is None:
            return None
        product *= count
    return product
