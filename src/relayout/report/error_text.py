"""Errors as a user meets them: three labelled lines on stderr, or one JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from relayout.errors import ConfigError, RelayoutError
from relayout.report.printable import printable, printable_lines

_INDENT = " " * 7


def error_text(error: RelayoutError) -> str:
    """What happened, where, and what to do next; what has several lines keeps them, below each other."""
    where = [printable(str(problem)) for problem in error.problems] if isinstance(error, ConfigError) else None
    parts = (
        ("what", _lines(error.what)),
        ("where", _lines(error.where) if where is None else where),
        ("next", _lines(error.next)),
    )
    return "\n".join(
        f"{'' if number else label:<5}  {line}".rstrip() for label, lines in parts for number, line in enumerate(lines)
    )


def error_json(error: RelayoutError) -> dict[str, Any]:
    """The error as a document; of a configuration with every problem by file, line and key."""
    document = {"schema": 1, "kind": "error", **error.to_json()}
    if isinstance(error, ConfigError):
        document["problems"] = [asdict(problem) for problem in error.problems]
    return document


def _lines(text: str) -> list[str]:
    # Texts of several lines come indented for `str(error)`.
    return [line.removeprefix(_INDENT) for line in printable_lines(text)] if text else []
