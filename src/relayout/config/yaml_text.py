"""YAML text → plain data that knows its lines.

Only the data part of YAML is accepted: no anchors, aliases, merge keys or tags, no repeated keys, one document, at most
1 MiB and 32 levels, so that a file cannot grow in memory or name a class. Plain scalars follow YAML 1.2 (`no` is text);
an integer with leading zeros is refused, because `01001` as a number would lose what it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from relayout.errors import ConfigProblem

MAX_BYTES = 2**20
MAX_DEPTH = 32

Path = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_BASED = re.compile(r"0o[0-7]{1,30}|0x[0-9a-fA-F]{1,30}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CONSTANTS = {"": None, "~": None} | {
    spelling: value
    for word, value in (("null", None), ("true", True), ("false", False))
    for spelling in (word, word.capitalize(), word.upper())
}


class WrittenFloat(float):
    """A number that remembers its digits: `0.10` is more than its nearest binary fraction."""

    def __new__(cls, text: str) -> WrittenFloat:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


@dataclass(slots=True)
class Document:
    """Plain data with the line of every key and item; filled while reading, not changed afterwards."""

    file: str
    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[ConfigProblem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """The line of a key, or of the nearest thing around it that has one; 0 without a text."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)

    def problem(self, path: Path, what: str, next: str = "") -> None:
        self.problems.append(ConfigProblem(self.file, self.line(path), key_text(path), what, next))


def key_text(path: Path) -> str:
    """`tables.orders.sort[0]`; a name that is not a plain word stands in quotes."""
    parts = [f"[{part}]" if isinstance(part, int) else _named(part) for part in path]
    return "".join(parts).lstrip(".") or "the file"


def _named(part: str) -> str:
    if re.fullmatch(r"[\w-]{1,80}", part):
        return "." + part
    shown = part if len(part) <= 80 else part[:77] + "..."
    return "[" + ascii(shown) + "]"


def read_yaml(text: str, file: str) -> Document:
    """Read everything that can be read; what is wrong with the text itself is in `problems`."""
    document = Document(file)
    try:
        _Reader(document, YAML(typ="safe", pure=True).parse(text)).read()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        document.problems.append(
            ConfigProblem(
                file,
                mark.line + 1 if mark else 0,
                "the file",
                f"not YAML: {error.problem or error.context}",
                _advice(text),
            )
        )
    except (YAMLError, ValueError) as error:
        # ruamel reports control characters and bad escapes as errors of these two kinds, without a mark.
        reason = str(error).splitlines()[0] if str(error) else "unreadable"
        document.problems.append(ConfigProblem(file, 0, "the file", f"not YAML: {reason}"))
    return document


def _advice(text: str) -> str:
    return (
        "YAML indents with spaces, not tabs" if "\t" in text else "check quotes, brackets and indentation just before"
    )


class _Stop(Exception):
    """Reading further makes no sense."""


class _Reader:
    """Events of the parser → data; every event is looked at before anything is built from it."""

    def __init__(self, document: Document, events: Iterator[Any]) -> None:
        self.document = document
        self.events = events

    def read(self) -> None:
        documents = 0
        try:
            for event in self.events:
                kind = type(event).__name__
                if kind == "DocumentStartEvent":
                    documents += 1
                    if documents > 1:
                        self._wrong((), event, "a second document (`---`)", "keep one document per file")
                        return
                elif kind not in ("StreamStartEvent", "StreamEndEvent", "DocumentEndEvent"):
                    self.document.data = self._value(event, (), 1)
        except _Stop:
            self.document.data = None

    def _wrong(self, path: Path, event: Any, what: str, next: str) -> None:
        line = event.start_mark.line + 1
        self.document.problems.append(ConfigProblem(self.document.file, line, key_text(path), what, next))

    def _value(self, event: Any, path: Path, depth: int) -> Any:
        kind = type(event).__name__
        self.document.lines.setdefault(path, event.start_mark.line + 1)
        if kind == "AliasEvent":
            self._wrong(path, event, f"an alias (*{event.anchor})", "write the value out; aliases are not read")
            return None
        if event.anchor:
            self._wrong(path, event, f"an anchor (&{event.anchor})", "remove it; anchors and aliases are not read")
        tag = event.tag if isinstance(event.tag, str) else None
        if tag:
            self._wrong(path, event, f"a tag ({tag})", "remove it; quotes make a text")
        if kind == "ScalarEvent":
            return self._scalar(event, path, tag)
        if depth > MAX_DEPTH:
            self._wrong(path, event, f"nested more than {MAX_DEPTH} levels deep", "flatten it")
            raise _Stop
        return self._mapping(path, depth) if kind == "MappingStartEvent" else self._sequence(path, depth)

    def _sequence(self, path: Path, depth: int) -> list[Any]:
        items: list[Any] = []
        for event in self.events:
            if type(event).__name__ == "SequenceEndEvent":
                break
            items.append(self._value(event, (*path, len(items)), depth + 1))
        return items

    def _mapping(self, path: Path, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for event in self.events:
            kind = type(event).__name__
            if kind == "MappingEndEvent":
                break
            key = _text_of(event) if kind == "ScalarEvent" else None
            if key is None or event.anchor or (key == "<<" and event.style is None):
                self._bad_key(path, event, kind, key, depth)
                continue
            here = (*path, key)
            line = event.start_mark.line + 1
            if key in values:
                again = f"said before, on line {self.document.lines[here]}"
                self._wrong(here, event, again, "keep one of the two")
                self._value(next(self.events), (*here, "again"), depth + 1)
                continue
            self.document.lines[here] = line
            values[key] = self._value(next(self.events), here, depth + 1)
        return values

    def _bad_key(self, path: Path, event: Any, kind: str, key: str | None, depth: int) -> None:
        if key == "<<":
            self._wrong((*path, key), event, "a merge key", "write the keys out; merge keys are not read")
        elif key is None and kind != "AliasEvent":
            self._wrong(path, event, "a key that is not a text", "use a plain word as the key")
            self._value(event, (*path, "?"), depth + 1)
        else:
            self._wrong(path, event, "an anchor or alias as a key", "write the key out")
        self._value(next(self.events), (*path, key or "?"), depth + 1)

    def _scalar(self, event: Any, path: Path, tag: str | None) -> Any:
        text = _text_of(event)
        if tag or event.style is not None:
            return text
        if _LEADING_ZERO.fullmatch(text):
            self._wrong(
                path,
                event,
                f"{text[:40]} is read as a number and would lose its zeros",
                f'write "{text[:40]}" for a text',
            )
            return text
        return plain_scalar(text)


def _text_of(event: Any) -> str:
    # JSON escapes a character beyond 16 bits as two, and every JSON file is a YAML file too.
    return str(event.value).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def plain_scalar(text: str) -> Any:
    """What an unquoted text means: YAML 1.2 core types, plus ISO dates so that they are not taken for sums."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text) and len(text) <= 60:
        return WrittenFloat(text)
    if _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return text
    return text
