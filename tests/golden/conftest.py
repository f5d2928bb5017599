"""Golden files: rendered text beside the tests that render it.

When a change of the text is meant, write the files anew and read the diff before committing it:

    RELAYOUT_REWRITE_GOLDEN=1 python -m pytest tests/golden
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REWRITE = os.environ.get("RELAYOUT_REWRITE_GOLDEN") == "1"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with the file of this name, exactly; a newline ends the file."""

    def matches(name: str, text: str) -> None:
        path = HERE / name
        if REWRITE:
            path.write_text(f"{text}\n", "utf-8", newline="\n")
        assert path.is_file(), f"{name} is not there; RELAYOUT_REWRITE_GOLDEN=1 writes it"
        assert f"{text}\n" == path.read_bytes().decode("utf-8"), f"{name} differs; see tests/golden/conftest.py"

    return matches
