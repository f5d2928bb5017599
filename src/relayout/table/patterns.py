"""Source patterns: which paths they mean, and what a path says about the rows of its file.

`*` and `?` stay within a segment, `**` spans folders, `[abc]` is one of some characters, `{name}` captures one or more
characters as a column, and every `key=value` folder below the root is a column too. Where a pattern can be laid over
a path in several ways the caller's types decide; a path that is still ambiguous is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from relayout.errors import SourceError, UsageError
from relayout.table.sources import PathValues

Accepts = Callable[[str, str], bool]
"""Whether a text can be a value of the named column."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_TOKEN = re.compile(r"\*+|\?|\[[!^]?\]?[^\]]*\]|\{[^{}/]*\}|[^*?\[{]+|.", re.DOTALL)
_SPECIAL = re.compile(r"[*?\[{]")
_NAME = re.compile(r"[^\W\d]\w*")


class AmbiguousPath(SourceError):
    """A path that says two different things under one pattern."""


@dataclass(frozen=True, slots=True)
class _Gap:
    """Any characters; a capture (`column` is set) takes at least one."""

    column: str = ""


@dataclass(frozen=True, slots=True)
class _One:
    """One character that `allowed` matches."""

    allowed: re.Pattern[str]


_Token = str | _Gap | _One
_Found = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """One folder or file name of a pattern; `deep` stands for any number of folders."""

    tokens: tuple[_Token, ...]
    outline: re.Pattern[str]
    deep: bool = False

    @property
    def literal(self) -> str | None:
        """The only name that the segment means, None where it means several."""
        return self.tokens[0] if len(self.tokens) == 1 and isinstance(self.tokens[0], str) else None

    @property
    def key(self) -> str:
        """The key of a `key=…` folder, empty where it is none."""
        first = self.tokens[0] if self.tokens else None
        return unquote(first.partition("=")[0]) if isinstance(first, str) and "=" in first else ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The key of `key=…` and captured columns."""
        captured = [token.column for token in self.tokens if isinstance(token, _Gap) and token.column]
        return tuple(dict.fromkeys([self.key, *captured] if self.key else captured))

    def fits(self, name: str) -> bool:
        """Whether a name can be meant at all, whatever its captures are worth; linear in the name's length."""
        if is_hidden(name) and (self.deep or not self._names_hidden(name)):
            return False
        return self.deep or self.outline.fullmatch(name) is not None

    def _names_hidden(self, name: str) -> bool:
        first = self.tokens[0] if self.tokens else None
        return isinstance(first, str) and first[0] == name[0]

    def readings(self, name: str, accepts: Accepts) -> tuple[_Found, ...]:
        """The ways to read a name's captures, at most two; empty when it is not meant."""
        if not self.fits(name):
            return ()
        if not any(isinstance(token, _Gap) and token.column for token in self.tokens):
            return ((),)
        if not self.key:
            return _readings(self.tokens, name, 0, 0, accepts, {})
        found = _readings(self.tokens, name, 0, 0, lambda column, text: _is_value(column, text, accepts), {})
        return tuple(tuple((column, _decoded(text)) for column, text in reading) for reading in found)


def _is_value(column: str, text: str, accepts: Accepts) -> bool:
    return text == HIVE_NULL or accepts(column, unquote(text))


def _decoded(text: str | None) -> str | None:
    return None if text is None or text == HIVE_NULL else unquote(text)


def _readings(
    tokens: tuple[_Token, ...],
    name: str,
    index: int,
    start: int,
    accepts: Accepts,
    seen: dict[tuple[int, int], tuple[_Found, ...]],
) -> tuple[_Found, ...]:
    # Two different readings of a rest are enough to know that the whole is ambiguous, so no more are kept: the work
    # is bounded by tokens times length squared, whatever the pattern.
    if index == len(tokens):
        return ((),) if start == len(name) else ()
    known = seen.get((index, start))
    if known is not None:
        return known
    token = tokens[index]
    found: list[_Found] = []
    if isinstance(token, str):
        if name.startswith(token, start):
            found.extend(_readings(tokens, name, index + 1, start + len(token), accepts, seen))
    elif isinstance(token, _One):
        if start < len(name) and token.allowed.fullmatch(name[start]):
            found.extend(_readings(tokens, name, index + 1, start + 1, accepts, seen))
    else:
        for end in _ends(tokens, name, index, start + (1 if token.column else 0)):
            text = name[start:end]
            rests = _readings(tokens, name, index + 1, end, accepts, seen)
            if rests and (not token.column or accepts(token.column, text)):
                here = ((token.column, text),) if token.column else ()
                found = list(dict.fromkeys([*found, *(here + rest for rest in rests)]))
            if len(found) > 1:
                break
    seen[index, start] = tuple(found[:2])
    return seen[index, start]


def _ends(tokens: tuple[_Token, ...], name: str, index: int, first: int) -> Iterator[int]:
    """Where a gap can end: at the end of the name or in front of the literal that follows."""
    if index + 1 == len(tokens):
        if first <= len(name):
            yield len(name)
        return
    following = tokens[index + 1]
    if not isinstance(following, str):
        yield from range(first, len(name) + 1)
        return
    if index + 2 == len(tokens):
        last = len(name) - len(following)
        if last >= first:
            yield last
        return
    place = name.find(following, first)
    while place >= 0:
        yield place
        place = name.find(following, place + 1)


@dataclass(frozen=True, slots=True)
class SourcePattern:
    """A parsed pattern; `root` is the longest folder without wildcards, `segments` is what follows below it.

    `last_deep` is the index of the last `**`, -1 where there is none: behind it depths are fixed.
    """

    text: str
    root: str
    segments: tuple[Segment, ...]
    last_deep: int

    @classmethod
    def parse(cls, text: str) -> SourcePattern:
        """UsageError names the pattern when it cannot be meant."""
        if not text or "\0" in text:
            raise UsageError(f"{text!r} is not a source pattern", next="write a path such as data/*.json")
        scheme, body = _scheme(text)
        names = [name for name in body.split("/") if name not in ("", ".")]
        if ".." in names:
            raise UsageError(f"{text!r} holds a '..' segment", next="write the folder's own path")
        if not names or (scheme and len(names) < 2):
            raise UsageError(f"{text!r} names no file", next="write a path such as data/*.json")
        if body.endswith("/"):
            raise UsageError(f"{text!r} names a folder", next=f"write {text}* or {text}**/*")
        if names[-1] == "**":
            names.append("*")
        segments = [_segment(name, text) for name in names]
        fixed = 0
        while fixed < len(segments) - 1 and segments[fixed].literal is not None:
            fixed += 1
        if scheme and not fixed:
            raise UsageError(f"{text!r} has a wildcard in the bucket's name", next="name the bucket")
        captured = [column for part in segments[fixed:] for column in part.columns]
        twice = {column for column in captured if captured.count(column) > 1}
        if twice:
            raise UsageError(f"{text!r} takes {min(twice)!r} from two places", next="give them different names")
        lead = scheme or ("/" if body.startswith("/") else "")
        root = lead + "/".join(str(part.literal) for part in segments[:fixed])
        rest = tuple(segments[fixed:])
        return cls(text, root or ".", rest, max((i for i, part in enumerate(rest) if part.deep), default=-1))

    @property
    def columns(self) -> tuple[str, ...]:
        """What the pattern itself declares; folders below `**` may give more."""
        return tuple(column for part in self.segments for column in part.columns)

    def match(self, path: str, accepts: Accepts) -> PathValues | None:
        """What the path says, in the order of the pattern; None when the pattern does not mean it."""
        start = "" if self.root == "." else self.root.rstrip("/") + "/"
        if not path.startswith(start):
            return None
        names = path[len(start) :].split("/")
        readings = self._readings(0, names, 0, accepts, {})
        if not readings:
            return None
        if len(readings) > 1:
            shown = " or ".join(_shown(reading) for reading in readings)
            raise AmbiguousPath(
                f"the pattern {self.text!r} can read this path as {shown}",
                where=path,
                next="declare the types of these columns, or write the pattern so that it can match in one way only",
            )
        return _with_folders(readings[0], names[:-1], path)

    def _readings(
        self,
        index: int,
        names: list[str],
        place: int,
        accepts: Accepts,
        seen: dict[tuple[int, int], tuple[_Found, ...]],
    ) -> tuple[_Found, ...]:
        if index == len(self.segments):
            return ((),) if place == len(names) else ()
        if index > self.last_deep and len(names) - place != len(self.segments) - index:
            return ()
        if place == len(names) and not self.segments[index].deep:
            return ()
        if (index, place) in seen:
            return seen[index, place]
        segment = self.segments[index]
        found: list[_Found] = []
        if segment.deep:
            found.extend(self._readings(index + 1, names, place, accepts, seen))
            if place < len(names) - 1 and segment.fits(names[place]):
                found.extend(self._readings(index, names, place + 1, accepts, seen))
        else:
            for here in segment.readings(names[place], accepts):
                found.extend(here + rest for rest in self._readings(index + 1, names, place + 1, accepts, seen))
        seen[index, place] = tuple(dict.fromkeys(found))[:2]
        return seen[index, place]


def escaped(path: str) -> str:
    """A path as a pattern that means this path alone."""
    return _SPECIAL.sub(lambda found: f"[{found.group()}]", path)


def is_hidden(name: str) -> bool:
    """Names of helper files such as `_SUCCESS` and `.part.crc`; `_key=value` folders are data."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _scheme(text: str) -> tuple[str, str]:
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text)
    if not found:
        return "", text
    if found.group(1).lower() not in ("s3", "s3a", "s3n", "file"):
        raise UsageError(f"{text!r} is in a store that relayout cannot read", next="use a local path or s3://bucket/…")
    if found.group(1).lower() == "file":
        return "", text[found.end() :]
    return "s3://", text[found.end() :]


@lru_cache(maxsize=1024)
def _segment(name: str, text: str) -> Segment:
    if name == "**":
        return Segment((), re.compile(""), deep=True)
    tokens: list[_Token] = []
    for token in _TOKEN.findall(name):
        parsed = _parsed(token, text)
        if isinstance(parsed, str) and tokens and isinstance(tokens[-1], str):
            tokens[-1] += parsed
        elif not (parsed == _Gap() and tokens and tokens[-1] == _Gap()):
            tokens.append(parsed)
    return Segment(tuple(tokens), re.compile(_outline(tokens), re.DOTALL))


def _parsed(token: str, text: str) -> _Token:
    if token[0] == "*":
        return _Gap()
    if token == "?":
        return _One(re.compile(".", re.DOTALL))
    if token[0] == "{":
        name = token[1:-1]
        if not token.endswith("}") or not _NAME.fullmatch(name):
            raise UsageError(
                f"{token!r} in {text!r} is not a capture", next="write {column}, or [{] for the character itself"
            )
        return _Gap(name)
    if token[0] == "[":
        if len(token) < 3:
            raise UsageError(f"'[' in {text!r} is never closed", next="write [[] for the character itself")
        return _one_of(token[1:-1], text)
    return token


def _one_of(inside: str, text: str) -> _Token:
    negated = inside[0] in "!^" and len(inside) > 1
    body = inside[1:] if negated else inside
    if len(body) == 1 and not negated:
        return body
    ranges = re.sub(r"[\\\]\[^&~|]", lambda found: "\\" + found.group(), body)
    try:
        return _One(re.compile(f"[{'^' if negated else ''}{ranges}]", re.DOTALL))
    except re.error as problem:
        raise UsageError(
            f"'[{inside}]' in {text!r} is not a set of characters: {problem}", next="write it like [abc] or [0-9]"
        ) from None


def _outline(tokens: list[_Token]) -> str:
    """A regular expression for what the tokens mean without captures; it never goes back, so it takes linear time."""
    parts: list[str] = []
    pending = False
    runs: list[str] = []
    for token in tokens:
        if isinstance(token, _Gap):
            if runs:
                parts.append(_run(runs, pending))
                runs, pending = [], False
            if token.column:
                runs.append(".")
                parts.append(_run(runs, pending))
                runs = []
            pending = True
        else:
            runs.append(re.escape(token) if isinstance(token, str) else token.allowed.pattern)
    # In front of the end a gap may be as long as it can: the last run fits there or nowhere.
    return "".join(parts) + (".*" if pending else "") + "".join(runs)


def _run(runs: list[str], pending: bool) -> str:
    return f"(?>.*?{''.join(runs)})" if pending else "".join(runs)


def _with_folders(reading: _Found, folders: list[str], path: str) -> PathValues:
    values: dict[str, str | None] = {}
    for folder in folders:
        key, equals, value = folder.partition("=")
        if key and equals:
            _tell(values, unquote(key), None if value == HIVE_NULL else unquote(value), path)
    for column, text in reading:
        _tell(values, column, text, path)
    return tuple(values.items())


def _tell(values: dict[str, str | None], column: str, text: str | None, path: str) -> None:
    if values.setdefault(column, text) != text:
        raise AmbiguousPath(
            f"the path says that {column} is {values[column]!r} and that it is {text!r}",
            where=path,
            next="rename the folder, or name the capture differently",
        )


def _shown(reading: _Found) -> str:
    return "{" + ", ".join(f"{column}={text}" for column, text in reading) + "}"
