"""`--help` as people read it, and errors of the command line as they meet them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relayout import cli

Golden = Callable[[str, str], None]

VERBS = [str(getattr(command.callback, "__name__", command.name)) for command in cli.app.registered_commands]


def said(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["relayout", *words])
    monkeypatch.setenv("COLUMNS", "100")
    code = cli.main()
    told = capfd.readouterr()
    return code, told.out, told.err


def test_help_of_every_verb_is_readable(
    golden: Golden, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = []
    for words in ((), *((verb,) for verb in VERBS)):
        code, out, err = said(capfd, monkeypatch, *words, "--help")
        assert (code, err) == (0, "")
        texts.append(f"$ relayout {' '.join((*words, '--help'))}\n{out.rstrip()}")
    golden("help.txt", "\n\n".join(texts))


def test_what_is_typed_wrongly_is_said_in_place(
    golden: Golden, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists").mkdir()
    lake = {
        "relayout.yaml": "tables:\n  t: {source: 'in/*.json'}\n  unmounted: {source: 'disk/*.json'}\n  stream: {}\n",
        "plan.json": '{"schema": 1, "kind": "ingest-plan", "plan_id": "x", "tables": [], "drops": []}',
        "note.txt": "no plan",
        "broken.yaml": "tables: [\n",
        "in/a.json": '{"id": 1}\n',
    }
    for name, text in lake.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    told = []
    for line in (
        "no-such-verb",
        "plan --no-such-option",
        "invalidate",
        "plan nosuch",
        "plan stream",
        "plan unmounted",
        "plan t -o nowhere/plan.json",
        "apply --plan none.json",
        "apply --plan note.txt",
        "apply --plan plan.json",
        "apply --plan plan.json t",
        "status nosuch",
        "status ../../etc",
        "invalidate t",
        "invalidate nosuch",
        "-c none.yaml plan",
        "-c broken.yaml plan",
        "-c lists plan",
        "init .",
    ):
        code, out, err = said(capfd, monkeypatch, *line.split())
        assert (code, out) == (2, "")
        told.append(f"$ relayout {line}\n{err.rstrip().replace(str(tmp_path), '/lake')}")
    golden("usage_errors.txt", "\n\n".join(told))
