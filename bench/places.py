"""Where benchmarks keep what they make; everything but the results may be deleted at any time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "performance.md"


@contextmanager
def fresh_folder(name: str) -> Iterator[Path]:
    """An empty folder that is gone afterwards."""
    folder = BUILD / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
