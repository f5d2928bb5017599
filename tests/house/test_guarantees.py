"""What the documentation promises, it promises with a test: each one that a page names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

NAMED = re.compile(r"`(tests/[\w/]+[.]py)::(\w+)`")
GUARANTEES = re.compile(r"^## Guarantees\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def unkept_promises(project: Mapping[str, str]) -> Iterator[str]:
    """Tests that a page names and that are not there, and guarantees that name none."""
    for page, text in project.items():
        if not page.endswith(".md"):
            continue
        for path, name in NAMED.findall(text):
            if name not in functions_in(project.get(path, "")):
                yield f"{page}: {path}::{name} is not there"
        for table in GUARANTEES.findall(text):
            rows = [line for line in table.splitlines() if line.startswith("|")][2:]
            if not rows:
                yield f"{page}: no guarantee is named"
            yield from (f"{page}: no test stands behind {row!r}" for row in rows if not NAMED.search(row))


def functions_in(source: str) -> set[str]:
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def test_every_guarantee_is_kept_by_a_test_that_is_there(project: Mapping[str, str]) -> None:
    assert NAMED.search(project["docs/ingest.md"])
    assert not (faults := list(unkept_promises(project))), "\n".join(faults)


# The rule is broken here on purpose.

HEAD = "## Guarantees\n\n| you can rely on | test |\n| --- | --- |\n"


def test_a_promise_without_its_test_is_caught() -> None:
    there = {"tests/a/test_b.py": "def test_c() -> None: ..."}
    pages = {
        "whole.md": HEAD + "| all | `tests/a/test_b.py::test_c` |\n",
        "renamed.md": HEAD + "| all | `tests/a/test_b.py::test_d` |\n",
        "moved.md": "see `tests/a/test_z.py::test_c`",
        "bare.md": HEAD + "| all | trust us |\n\n## Next\n",
        "empty.md": HEAD,
    }
    assert list(unkept_promises(there | pages)) == [
        "renamed.md: tests/a/test_b.py::test_d is not there",
        "moved.md: tests/a/test_z.py::test_c is not there",
        "bare.md: no test stands behind '| all | trust us |'",
        "empty.md: no guarantee is named",
    ]
