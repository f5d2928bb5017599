"""Sizes, counts and durations in words, the same everywhere: `1.5 GB`, `3,200 files`, `6m 12s`.

Sizes count in thousands, as disks and the size targets do.
"""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def size_text(size_bytes: float) -> str:
    """`999 B`, `1.5 GB`, `240 MB`: one decimal below a hundred of a unit, none from there on."""
    size = float(size_bytes)
    for unit in _UNITS:
        shown = f"{size:.0f}" if unit == "B" or round(size, 1) >= 100 else f"{size:.1f}"
        if float(shown) < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{shown} {unit}"


def count_text(count: int, singular: str, plural: str = "") -> str:
    """`1 file`, `3,200 files`, `2 batches` (the plural is told where an `s` does not make it)."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def estimate_text(count: int) -> str:
    """An estimated count with as many digits as it deserves: `~12,300,000`."""
    digits = len(str(abs(count)))
    return f"~{round(count, min(0, 3 - digits)):,}"


def duration_text(seconds: float) -> str:
    """`0.4s`, `1.2s`, `6m 12s`, `2h 5m`, `3d 4h`: the two largest units."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest}s"
    hours, minutes = divmod(round(whole / 60), 60)
    if hours < 24:
        return f"{hours}h {minutes}m"
    days, hours = divmod(round(whole / 3600), 24)
    return f"{days}d {hours}h"
