"""Bounds and counts of a column in one file as evidence; a bound that cannot be trusted is left out."""

from __future__ import annotations

import math
import struct

from relayout.table.evidence import ANYTHING, Evidence, Value
from relayout.table.live_entries import ColumnCounts, Summary
from relayout.table.moments import UNITS_PER_HOUR
from relayout.table.transforms import Transform, range_evidence

_UNORDERED = ("uuid",)
"""Writers disagree on the order of these, so their bounds do not enclose anything for sure."""


def decoded_bound(raw: bytes | None, kind: str) -> Value:
    """A bound in Iceberg's own form; None when there is none or it is damaged.

    A column may have been widened since the bound was written, which its length tells.
    """
    if raw is None or kind in _UNORDERED:
        return None
    try:
        value = _decoded(raw, kind)
    except (ValueError, struct.error):
        return None
    return None if isinstance(value, float) and math.isnan(value) else value


def _decoded(raw: bytes, kind: str) -> Value:
    if kind in ("int", "long", "date", "time") or kind in UNITS_PER_HOUR:
        number = int.from_bytes(raw, "little", signed=True)
        if kind in UNITS_PER_HOUR and len(raw) == 4:
            return number * 24 * UNITS_PER_HOUR[kind]
        return number
    if kind.startswith("decimal"):
        return int.from_bytes(raw, "big", signed=True)
    match kind:
        case "float" | "double":
            return struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
        case "string":
            return raw.decode("utf-8")
        case "boolean":
            return raw != b"\x00"
        case _:
            return raw


def column_evidence(counts: ColumnCounts, field_id: int, kind: str, *, required: bool) -> Evidence:
    """What a file's statistics say of one column."""
    values, nulls = counts.values.get(field_id), counts.nulls.get(field_id)
    floating = kind in ("float", "double")
    known = Evidence(
        may_have_nulls=not required and nulls != 0,
        may_have_values=nulls is None or values is None or nulls < values,
        may_have_nans=floating and counts.nans.get(field_id) != 0,
        lower=decoded_bound(counts.lower.get(field_id), kind),
        upper=decoded_bound(counts.upper.get(field_id), kind),
    )
    return known.narrowed_by(ANYTHING)


def summary_evidence(summary: Summary, transform: Transform, kind: str, result_kind: str) -> Evidence:
    """What a manifest's summary of a partition field says of the source column in all of its files."""
    lower, upper = decoded_bound(summary.lower, result_kind), decoded_bound(summary.upper, result_kind)
    known = range_evidence(transform, kind, lower, upper)
    only_nulls = summary.lower is None and summary.contains_null and not summary.contains_nan
    told = transform.name not in ("void", "unknown")
    return known.narrowed_by(
        Evidence(
            may_have_nulls=not told or summary.contains_null,
            may_have_values=not (told and only_nulls),
            may_have_nans=not told or summary.contains_nan,
        )
    )
