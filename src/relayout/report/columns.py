"""Aligned text: cells as wide as a terminal shows them, columns side by side, prose broken at a width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence

from rich.cells import cell_len, set_cell_size

GAP = "  "
_NARROWEST = 8
"""No column is cut below this to make room for others; the line runs over instead."""

_CODE = re.compile(r"`[^`]+`")
_UNBROKEN = "\0"
"""Stands for a blank at which no line ends; printable text does not hold it."""


def cut(text: str, width: int) -> str:
    """The text in at most `width` cells; an ellipsis stands for what had to go."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def padded(text: str, width: int, right: bool = False) -> str:
    """The text in exactly `width` cells, or as it is when it is wider."""
    filler = " " * max(0, width - cell_len(text))
    return filler + text if right else text + filler


def widths_of(rows: Iterable[Sequence[str]]) -> list[int]:
    """Cells that each column needs."""
    widths: list[int] = []
    for row in rows:
        widths += [0] * (len(row) - len(widths))
        for place, text in enumerate(row):
            widths[place] = max(widths[place], cell_len(text))
    return widths


def aligned(rows: Sequence[Sequence[str]], room: int, right: Collection[int] = ()) -> list[str]:
    """The rows as lines of at most `room` with columns side by side; those in `right` end together."""
    widths = fitted(widths_of(rows), room)
    return [line_of(row, widths, right) for row in rows]


def line_of(row: Sequence[str], widths: Sequence[int], right: Collection[int] = ()) -> str:
    """One row as a line, each cell cut and padded to its column's width."""
    cells = zip(row, widths, strict=True)
    return GAP.join(
        padded(cut(text, width), width, place in right) for place, (text, width) in enumerate(cells)
    ).rstrip()


def fitted(widths: Sequence[int], room: int) -> list[int]:
    """The widths, the widest made narrower until all of them and the gaps between fit into `room`."""
    fitting = list(widths)
    excess = sum(fitting) + len(GAP) * (len(fitting) - 1) - room
    while excess > 0:
        widest = max(fitting, default=0)
        if widest <= _NARROWEST:
            break
        places = [place for place, width in enumerate(fitting) if width == widest]
        below = max([width for width in fitting if width < widest] + [_NARROWEST])
        step = min(widest - below, -(-excess // len(places)))
        for place in places:
            fitting[place] -= step
        excess -= step * len(places)
    return fitting


def wrapped(text: str, width: int, indent: str, first: str = "") -> list[str]:
    """Prose as lines of at most `width`, indented; what one copies (`code`, paths, long words) is never broken."""
    lines = textwrap.wrap(
        _CODE.sub(lambda code: code[0].replace(" ", _UNBROKEN), text),
        max(width, len(indent) + 20),
        initial_indent=first or indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_UNBROKEN, " ") for line in lines]
