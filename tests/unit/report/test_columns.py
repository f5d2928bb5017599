"""Cells side by side, as wide as a terminal shows them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from relayout.report.columns import aligned, cut, fitted, padded, wrapped
from relayout.report.sections import limited


def test_rows_stand_below_each_other() -> None:
    assert aligned([("batch", "files"), ("{year=2020}", "3,200"), ("{all}", "1")], 80, right=(1,)) == [
        "batch        files",
        "{year=2020}  3,200",
        "{all}            1",
    ]


def test_the_widest_column_gives_way() -> None:
    assert aligned([("a" * 30, "b" * 12, "c")], 40) == [f"{'a' * 22}…  {'b' * 12}  c"]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(1, 120))
def test_columns_fit_unless_all_are_narrow_already(widths: list[int], room: int) -> None:
    fitting = fitted(widths, room)
    needed = sum(fitting) + 2 * (len(fitting) - 1)
    assert all(now <= before for now, before in zip(fitting, widths, strict=True))
    assert needed <= room or max(fitting) <= 8
    if sum(widths) + 2 * (len(widths) - 1) <= room:
        assert fitting == widths


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z", "M"])), st.integers(1, 20))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cell_len(cut(text, width)) <= width
    assert cell_len(padded(cut(text, width), width)) == width


def test_long_words_are_never_broken() -> None:
    path = "s3://bucket/" + "x" * 100
    assert wrapped(f"changed {path}", 60, "    ", "  - ") == ["  - changed", f"    {path}"]


def test_what_is_there_to_be_copied_stays_on_one_line() -> None:
    advice = "below `spark:` in relayout.yaml write `driver_memory: 1536m`, `task_memory: 768m`"
    assert wrapped(advice, 40, "", "") == [
        "below `spark:` in relayout.yaml write",
        "`driver_memory: 1536m`,",
        "`task_memory: 768m`",
    ]
    assert wrapped("an odd ` stays what it is", 20, "") == ["an odd ` stays what", "it is"]


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, []),
        (2, ["0", "1"]),
        (3, ["0", "1", "2"]),
        (4, ["0", "1", "… and 2 more"]),
        (1_002, ["0", "1", "… and 1,000 more"]),
    ],
)
def test_of_many_only_the_first_are_listed(count: int, shown: list[str]) -> None:
    assert limited([str(number) for number in range(count)], 2) == shown
