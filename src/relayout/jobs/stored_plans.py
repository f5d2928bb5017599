"""Plans in files, between `plan -o` and `apply --plan`."""

from __future__ import annotations

import json
from pathlib import Path

from relayout.errors import MissingError, UsageError
from relayout.ingest.plan import IngestPlan


def write_plan(file: Path, text: str) -> None:
    """Store a plan for `apply --plan`."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the plan cannot be written: {error.strerror}",
            where=str(file),
            next="name a file in a folder that is there",
        ) from error


def read_plan(file: Path) -> IngestPlan:
    """A plan that was stored; what is no plan, or was altered, is refused."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingError(
            f"the plan cannot be read: {error.strerror}", where=str(file), next="write one with `relayout plan -o FILE`"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"this is not a plan: {error}", where=str(file), next="write one with `relayout plan -o FILE`"
        ) from error
    return IngestPlan.from_json(told)
