"""Text from outside on its way to a terminal or a log: nothing in it may act, break a line or fail to be encoded."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control, formatting and undecodable characters written as escapes (`\\n`, `\\x1b`, `\\u202e`).

    This is for eyes: a backslash that was there stays one, so two texts may look the same. JSON carries them exactly.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        # A byte of a file name that is not UTF-8, as Python carries it.
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def printable_lines(text: str) -> list[str]:
    """The lines of a text that means its line breaks, each printable, without empty ones at its ends."""
    return [printable(line.rstrip()) for line in text.strip("\n").split("\n")]


def one_line(text: str) -> str:
    """A text of several lines as one; what stood on lines of its own is parted by semicolons."""
    return "; ".join(printable(line.strip()) for line in text.splitlines() if line.strip())
