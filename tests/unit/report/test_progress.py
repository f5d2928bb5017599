"""What a run tells on stderr, to a log and to a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relayout.jobs.progress import Level, Listener
from relayout.report.progress import LogProgress, TerminalProgress, progress_for


def tell(listener: Listener) -> None:
    listener.line(Level.INFO, "Materializing table 'regional_income'")
    listener.advance("regional_income", 0, 2)
    listener.line(Level.INFO, "  Batch 1/2: {year=2020} - 1.2s, 2 files")
    listener.advance("regional_income", 1, 2)
    listener.line(Level.WARNING, "Batch {year=2021} has 3,200 files [bold]and[/bold] :boom: \x1b[2J")
    listener.advance("regional_income", 2, 2)
    listener.line(Level.ERROR, "two\nlines")


PLAIN = [
    "INFO  Materializing table 'regional_income'",
    "INFO    Batch 1/2: {year=2020} - 1.2s, 2 files",
    "WARN  Batch {year=2021} has 3,200 files [bold]and[/bold] :boom: \\x1b[2J",
    "ERROR two\\nlines",
]


def test_a_log_gets_plain_lines_and_no_bars(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    with LogProgress(stream) as listener:
        tell(listener)
    assert stream.getvalue().splitlines() == PLAIN
    assert capsys.readouterr() == ("", "")


def test_a_file_is_a_log(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        assert isinstance(progress_for(stream), LogProgress)


def on_terminal(told: Callable[[Listener], None]) -> str:
    """What a terminal was sent."""
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as received, ThreadPoolExecutor(1) as reader:
        sent = reader.submit(everything, received)
        with os.fdopen(follower, "w") as stream:
            listener = progress_for(stream)
            assert isinstance(listener, TerminalProgress)
            with contextlib.suppress(KeyboardInterrupt), listener:
                told(listener)
        return sent.result().decode()


def everything(received: io.FileIO) -> bytes:
    """All bytes until the other side hangs up, which Linux reports as an error."""
    found = b""
    with contextlib.suppress(OSError):
        while piece := received.read(1 << 16):
            found += piece
    return found


def test_a_terminal_gets_lines_and_a_bar_that_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    sent = on_terminal(tell)
    for line in PLAIN:
        assert line in sent
    shown = re.sub(r"\x1b\[[0-9;]*m", "", sent)
    assert re.search(r"regional_income ━+ 0/2 batches 0:00:0\d", shown)
    assert re.search(r"regional_income ━+╺?━+ 1/2 batches 0:00:0\d", shown)
    # The cursor that the bars hid is shown again.
    assert sent.rindex("\x1b[?25h") > sent.rindex("\x1b[?25l")
    assert "\x1b[2J" not in sent
    assert capsys.readouterr() == ("", "")


def test_a_run_that_fails_gives_the_terminal_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    def stopped(listener: Listener) -> None:
        listener.advance("t", 1, 5)
        raise KeyboardInterrupt

    sent = on_terminal(stopped)
    assert sent.rindex("\x1b[?25h") > sent.rindex("\x1b[?25l")


def test_long_lines_are_neither_broken_nor_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    line = "word " * 60 + "end"
    assert f"INFO  {line}" in on_terminal(lambda listener: listener.line(Level.INFO, line))
