"""What the house tests look at: the package's modules as text, and every file that belongs to the project."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".hypothesis", ".venv", "build", "dist", "__pycache__", "spark-warehouse", "metastore_db"}


@pytest.fixture(scope="session")
def package() -> Mapping[str, str]:
    """Module name -> source, for every module of the package."""
    modules = {}
    for path in sorted((ROOT / "src" / "relayout").rglob("*.py")):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    assert "relayout.errors" in modules, "the package was not found"
    return modules


@pytest.fixture(scope="session")
def code() -> Mapping[str, str]:
    """Path -> source, for every Python file: package, tests, benchmarks, judges."""
    return {path: text for path, text in texts_of(project_files()).items() if path.endswith(".py")}


@pytest.fixture(scope="session")
def project() -> Mapping[str, str]:
    """Path -> text, for every file that is or would be committed; what is not text is left out."""
    return texts_of(project_files())


def project_files() -> list[Path]:
    """Ask git where there is one; otherwise walk the tree past what is generated."""
    if (ROOT / ".git").exists() and (git := shutil.which("git")):
        command = [git, "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return [ROOT / name for name in answer.stdout.split("\0") if name and (ROOT / name).is_file()]
    return walk(ROOT)


def walk(root: Path) -> list[Path]:
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS and not name.endswith(("_cache", ".egg-info"))]
        found += [Path(folder, name) for name in files if not name.endswith((".pyc", ".pyo"))]
    return found


def texts_of(paths: list[Path]) -> dict[str, str]:
    texts = {}
    for path in sorted(paths):
        content = path.read_bytes()
        if b"\0" not in content:
            texts[path.relative_to(ROOT).as_posix()] = content.decode("utf-8", errors="replace")
    return texts
