"""What the texts about plans, receipts and tables are made of: labelled prose, and lists that end in time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from relayout.report.columns import padded, wrapped
from relayout.report.printable import printable, printable_lines

WIDTH = 100
"""How wide a text is made when nobody says."""

MARGIN = "  "
_LABEL_CELLS = 11
_TEXT_INDENT = MARGIN + " " * _LABEL_CELLS
_MOST_LISTED = 10


def labelled(label: str, text: str, width: int) -> list[str]:
    """Prose beside its label, broken at the width; an empty text gives nothing."""
    return wrapped(printable(text), width, _TEXT_INDENT, MARGIN + padded(label, _LABEL_CELLS))


def listed(label: str, items: Sequence[str], width: int, most: int = _MOST_LISTED) -> list[str]:
    """Items one below the other beside their label; of many only the first ones, and how many more there are."""
    lines: list[str] = []
    for number, item in enumerate(limited(items, most)):
        bullet = "- " if number < most or len(items) == most + 1 else ""
        first = _TEXT_INDENT if number else MARGIN + padded(label, _LABEL_CELLS)
        lines += wrapped(printable(item), width, _TEXT_INDENT + "  ", first + bullet)
    return lines


def several_lines(label: str, text: str) -> list[str]:
    """A text that means its line breaks beside its label, as it is; an empty one gives nothing."""
    lines = printable_lines(text) if text else []
    return [
        (_TEXT_INDENT if number else MARGIN + padded(label, _LABEL_CELLS)) + line for number, line in enumerate(lines)
    ]


def bad_file_lines(files: Sequence[tuple[str, str]], told: Collection[str], width: int) -> list[str]:
    """Source files that could not be used, each with its reason, and what to do about them; not those told already."""
    left = [text for path, reason in files if (text := f"{path}: {reason}") not in told]
    if not left:
        return []
    return [
        *listed("bad files", left, width),
        *labelled("", "nothing of such a file is loaded; correct or remove it", width),
    ]


def limited(items: Sequence[str], most: int) -> list[str]:
    """The first items, and how many more there are; one more is shown rather than counted."""
    if len(items) <= most + 1:
        return list(items)
    return [*items[:most], f"… and {len(items) - most:,} more"]


def joined(blocks: Iterable[Sequence[str]]) -> str:
    """Blocks of lines as one text, with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks if block)
