"""What a long run tells while it works; the terminal, a log or nobody listens."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Level(StrEnum):
    """How loud a line is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Listener(Protocol):
    """Takes finished lines, and how far the work of a table is."""

    def line(self, level: Level, text: str) -> None: ...

    def advance(self, table: str, done: int, total: int) -> None: ...


class Silence:
    """Nobody listens."""

    def line(self, level: Level, text: str) -> None:
        """Drop the line."""

    def advance(self, table: str, done: int, total: int) -> None:
        """Drop the step."""
