"""The judge: DuckDB 1.5.5 in an environment of its own, because later versions have no packaged Iceberg extension."""

from __future__ import annotations

import json
import subprocess
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosscheck.services.packages import last_line
from crosscheck.services.processes import NotObtainable, quiet_environment

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "judge.txt"
PROGRAM = HERE / "judge_program.py"

Command = tuple[str, ...]
"""How the judge is called; empty where there is none."""


def judge_command(folder: Path) -> Command:
    """Make the judge's environment once, from locked requirements."""
    python = folder / "bin" / "python"
    done = folder / ".done"
    if not done.exists() or done.read_bytes() != REQUIREMENTS.read_bytes():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        answer = subprocess.run(
            [*command, "--requirement", str(REQUIREMENTS)], capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            raise NotObtainable(f"the judge's packages could not be installed: {last_line(answer.stderr)}")
        done.write_bytes(REQUIREMENTS.read_bytes())
    return (str(python), str(PROGRAM))


def judged_rows(
    command: Command, tables: Mapping[str, tuple[str, Sequence[str]]], store: Mapping[str, str]
) -> dict[str, list[list[Any]]]:
    """The rows that the judge sees in each table, given its metadata location and the columns to read."""
    question = json.dumps({"tables": {name: list(asked) for name, asked in tables.items()}, "store": dict(store)})
    answer = subprocess.run(
        command, input=question, capture_output=True, text=True, env=quiet_environment(), check=False
    )
    if answer.returncode != 0:
        raise RuntimeError(f"the judge failed: {answer.stderr.strip()[-600:]}")
    found: dict[str, list[list[Any]]] = json.loads(answer.stdout)
    return found
