"""The beginnings of files tell their columns, whatever their values are."""

from __future__ import annotations

from pathlib import Path

import pytest

from relayout.read.heads import HEAD_BYTES, columns_in_heads
from relayout.table.sources import SourceFile


def columns_of(folder: Path, content: bytes) -> set[str] | None:
    path = folder / "data.json"
    path.write_bytes(content)
    return columns_in_heads([SourceFile(str(path), len(content), 0)], {str(path): "json"})


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b'{"a": 1}\n{"b": {"c": 2}}\n', {"a", "b"}),
        (b'{"a": 1}\n\n{"a": "x", "b": [1, "y"]}', {"a", "b"}),
        (b'\xef\xbb\xbf{"a": null}\n', {"a"}),
        (b'{"a\\u00e9": true}\n', {"a\u00e9"}),
        (b'{"a": 1, "a": "x"}\n', {"a"}),
    ],
)
def test_every_key_of_every_record_is_a_column(tmp_path: Path, content: bytes, names: set[str]) -> None:
    assert columns_of(tmp_path, content) == names


@pytest.mark.parametrize("content", [b"", b"[1]\n", b"3\n", b'{"a": 1\n', b'{"a": 1}\n[2]\n', b'{"\xff": 1}\n'])
def test_what_is_not_lines_of_records_tells_nothing(tmp_path: Path, content: bytes) -> None:
    assert columns_of(tmp_path, content) is None


def test_a_record_that_the_head_cuts_is_left_out(tmp_path: Path) -> None:
    whole = b'{"a": 1}\n'
    cut = b'{"b": "' + b"x" * HEAD_BYTES + b'"}\n'
    assert columns_of(tmp_path, whole + cut) == {"a"}
