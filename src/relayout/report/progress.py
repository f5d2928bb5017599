"""How far a run is, on stderr: plain lines for a log, a bar per table below the lines on a terminal.

Both take what `jobs` tells its listener: finished lines with their level, and how many batches of a table are done.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from relayout.report.log_lines import with_level
from relayout.report.printable import printable

_STYLES = {"warning": "yellow", "error": "red"}


def progress_for(stream: TextIO) -> LogProgress | TerminalProgress:
    """The listener that suits the stream."""
    return TerminalProgress(stream) if stream.isatty() else LogProgress(stream)


class LogProgress:
    """Writes every line as it comes, and no bars."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()

    def line(self, level: str, text: str) -> None:
        """Write the line with its level."""
        self._stream.write(with_level(level, printable(text)) + "\n")
        self._stream.flush()

    def advance(self, table: str, done: int, total: int) -> None:
        """Say nothing: the lines of a log tell it."""


class TerminalProgress:
    """Writes lines above a bar for each table that is being worked on; the bars leave nothing behind."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, markup=False, highlight=False, emoji=False)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("batches"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._tables: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def line(self, level: str, text: str) -> None:
        """Write the line above the bars."""
        shown = Text(with_level(level, printable(text)), style=_STYLES.get(level, ""))
        self._console.print(shown, soft_wrap=True)

    def advance(self, table: str, done: int, total: int) -> None:
        """Move the table's bar; it goes when everything is done."""
        if table not in self._tables:
            self._tables[table] = self._bars.add_task(printable(table), total=total)
        self._bars.update(self._tables[table], completed=done, total=total)
        if done >= total:
            self._bars.remove_task(self._tables.pop(table))
        self._bars.refresh()
