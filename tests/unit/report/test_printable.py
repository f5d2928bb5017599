"""Text from outside on its way to eyes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.report.printable import one_line, printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 東京 😀", "größe 東京 😀"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31m\x07", "\\x1b[31m\\x07"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("caf\udce9.json", "caf\\xe9.json"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_acts_or_cannot_be_encoded_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_one_printable_line_and_can_be_written(text: str) -> None:
    for shown in (printable(text), one_line(text), *printable_lines(text)):
        assert shown.isprintable()
        shown.encode("utf-8")


def test_lines_that_are_meant_stay_lines() -> None:
    assert printable_lines("\na  \n\n  b\x07\n") == ["a", "", "  b\\x07"]
    assert one_line("a\n\n  b \r\nc") == "a; b; c"
