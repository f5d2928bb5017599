"""Sizes and durations as people write them.

Units of bytes are powers of 1,024 whatever their spelling (`50gb` is `50g`), as Spark and Iceberg count them.
"""

from __future__ import annotations

import re

_SIZE_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_SECONDS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_MEMORY = re.compile(r"([0-9]{1,15})([kmgt])b?", re.IGNORECASE)
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(?:([kmgtp])(?:i?b)?|b)?", re.IGNORECASE)
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(ms|s|sec|m|min|h|d|w)", re.IGNORECASE)


def memory_bytes(text: str) -> int:
    """Bytes of a memory setting that Spark accepts (`4g`, `512m`); anything else is a ValueError."""
    match = _MEMORY.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise ValueError(f"{text!r} is not a memory size")
    return int(match[1]) * _SIZE_UNITS[match[2].lower()]


def size_bytes(text: str) -> int:
    """Bytes of a size (`50gb`, `1.5 TiB`, `1048576`); anything else is a ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size")
    return int(float(match[1]) * _SIZE_UNITS[(match[2] or "").lower()])


def duration_seconds(text: str) -> float:
    """Seconds of a duration with its unit (`30s`, `7d`); a bare number is a ValueError: it could mean anything."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    return float(match[1]) * _SECONDS[match[2].lower()]
