"""Which mapped columns are plain constants; anything else is Spark's to compute."""

from __future__ import annotations

import re
from collections.abc import Mapping

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
TEXT = re.compile(r"'((?:[^'\\])*)'")

LITERAL_TYPES = {"true": "boolean", "false": "boolean"}


def literal_type(expression: str) -> str | None:
    """The Iceberg type of a constant that DuckDB and Spark write alike, or None for any other expression."""
    text = expression.strip()
    if text.lower() in LITERAL_TYPES:
        return "boolean"
    if TEXT.fullmatch(text):
        return "string"
    if NUMBER.fullmatch(text):
        whole = text.lstrip("+-")
        if "." not in whole:
            return "int" if int(whole) < 1 << 31 else ("long" if int(whole) < 1 << 63 else None)
        digits, _, fraction = whole.partition(".")
        return f"decimal({len(digits.lstrip('0')) + len(fraction) or 1},{len(fraction)})"
    return None


def split_expressions(columns: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Constants for the kernel and expressions for Spark; one expression makes Spark compute all of them."""
    literals = tuple((name, text.strip()) for name, text in columns.items() if literal_type(text) is not None)
    others = tuple((name, text) for name, text in columns.items() if literal_type(text) is None)
    return (literals, ()) if not others else ((), tuple(columns.items()))
