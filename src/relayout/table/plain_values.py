"""Values in Iceberg's own form as JSON writes them: the single-value serialization of its specification."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal, localcontext

from relayout.table.batches import Scalar
from relayout.table.evidence import Value
from relayout.table.moments import DAY_HOURS, UNITS_PER_HOUR, civil


def json_of(value: Value, kind: str) -> Scalar:
    """A value of the type as JSON holds it; floats that JSON has not become texts."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if isinstance(value, bytes):
        return str(uuid.UUID(bytes=value)) if kind == "uuid" else value.hex().upper()
    if kind == "date":
        return _date(value)
    if kind == "time":
        return _clock(value, 1_000_000)
    if kind in UNITS_PER_HOUR:
        per_day = UNITS_PER_HOUR[kind] * DAY_HOURS
        clock = _clock(value % per_day, per_day // 86_400)
        return f"{_date(value // per_day)}T{clock}" + ("+00:00" if "tz" in kind else "")
    if kind.startswith("decimal"):
        scale = int(kind[len("decimal(") : -1].split(",")[1])
        with localcontext(prec=60):
            return f"{Decimal(value).scaleb(-scale):f}"
    return int(value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _date(days: int) -> str:
    year, month, day = civil(days)
    told = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{told}-{month:02d}-{day:02d}"


def _clock(count: int, per_second: int) -> str:
    seconds, fraction = divmod(count, per_second)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:0{len(str(per_second)) - 1}d}" if fraction else text
