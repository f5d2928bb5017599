"""`import relayout` is cheap and complete: nothing heavy is loaded, and every error has a public name."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import relayout
from relayout import errors

HEAVY = {"duckdb", "numpy", "pandas", "py4j", "pyarrow", "pydantic", "pyiceberg", "pyspark", "rich", "typer"}


def test_importing_relayout_loads_nothing_heavy() -> None:
    program = "import json, sys, relayout, relayout.errors; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY & set(json.loads(answer.stdout)) == set()


def test_every_error_can_be_caught_by_its_public_name() -> None:
    ours = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.RelayoutError)
    }
    assert ours - set(relayout.__all__) == set()
    assert all(getattr(relayout, name) is getattr(errors, name) for name in ours)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(relayout, "nothing_of_the_kind")
    assert sorted(dir(relayout)) == sorted(relayout.__all__)


def test_the_version_has_one_source() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert relayout.__version__ == "0.1.0"
