"""The command line inside the test process, so that all tests share one Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from relayout import cli
from tests.spark.lifecycle.conftest import downloads, lake_of, rows_in

__all__ = ["downloads", "lake_of", "rows_in"]


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def relayout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """`relayout("plan", "--json")`: a command on the test's lake, which `lake_of` declares."""

    def run(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["relayout", "-c", str(tmp_path / "lake"), *words])
        capfd.readouterr()
        code = cli.main()
        told = capfd.readouterr()
        said = Said(code, told.out, told.err)
        assert "Traceback" not in said.out + said.err
        return said

    return run
