"""The tree behind a type text: parsing every spelling that users and engines write, and the one canonical text.

Canonical text is Iceberg's: `long`, `decimal(18,2)`, `struct<a: long, b: list<string>>`, `map<string, long>`.
`null` stands for a column of which no value has been seen yet.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from relayout.errors import UsageError

MAX_PRECISION = 38
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts; `args` holds (precision, scale) of a decimal or (length,) of a fixed."""

    name: str
    args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields in order; no name occurs twice."""

    fields: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class List:
    """A sequence of one element type."""

    element: Node


@dataclass(frozen=True, slots=True)
class Map:
    """Keys of one type to values of another."""

    key: Node
    value: Node


Node = Primitive | Struct | List | Map

_SPELLINGS = {
    "boolean": "boolean bool logical",
    "int": "int integer int4 int32 int16 int2 int1 tinyint smallint mediumint short byte signed "
    "utinyint usmallint uint8 uint16",
    "long": "long bigint int8 int64 uinteger uint32",
    "float": "float float4 float32 real",
    "double": "double float8 float64",
    "date": "date date32",
    "time": "time",
    "timestamp": "timestamp timestamp_ntz datetime timestamp_s timestamp_ms timestamp_us",
    "timestamptz": "timestamptz timestamp_ltz",
    "timestamp_ns": "timestamp_ns",
    "timestamptz_ns": "timestamptz_ns",
    "string": "string varchar char character nvarchar nchar text bpchar clob json",
    "uuid": "uuid",
    "binary": "binary varbinary blob bytea bytes",
    "null": "null void unknown",
}
_NAME_OF = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_DECIMALS = {"decimal", "numeric", "dec"}
_WIDE_INTEGERS = {"ubigint": 20, "uint64": 20, "hugeint": MAX_PRECISION, "int128": MAX_PRECISION}
_WITH_LENGTH = {"string", "binary", "time", "timestamp", "timestamptz", "float"}
_ZONED = {"timestamp": "timestamptz", "timestamp_ns": "timestamptz_ns"}
_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|(?P<quoted>`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\")|(?P<mark>[<>()\[\],:]))")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def text_of_node(node: Node) -> str:
    """The canonical text; `parse_node` of it gives the same tree back."""
    match node:
        case Primitive("decimal", (precision, scale)):
            return f"decimal({precision},{scale})"
        case Primitive("fixed", (length,)):
            return f"fixed[{length}]"
        case Primitive(name):
            return name
        case Struct(fields):
            return "struct<" + ", ".join(f"{_name_text(name)}: {text_of_node(type)}" for name, type in fields) + ">"
        case List(element):
            return f"list<{text_of_node(element)}>"
        case Map(key, value):
            return f"map<{text_of_node(key)}, {text_of_node(value)}>"


def _name_text(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


@lru_cache(maxsize=4096)
def parse_node(text: str) -> Node:
    """The tree of a type text; UsageError names the text when it is not one."""
    try:
        parser = _Parser(_tokens(text))
        node = parser.type(0)
        if parser.peek():
            raise ValueError(f"unexpected {parser.peek()!r} after the type")
    except ValueError as problem:
        raise UsageError(
            f"{text!r} is not a type: {problem}",
            next="write a type such as long, string, decimal(18,2), timestamptz, list<string> or struct<a: long>",
        ) from None
    return node


def parse_type(text: str) -> str:
    """Any accepted spelling (Iceberg, Spark, DuckDB, SQL; any case) as canonical text."""
    return text_of_node(parse_node(text))


def decimal(precision: int, scale: int) -> Primitive:
    """A decimal type; ValueError when no Iceberg table can hold it."""
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        raise ValueError(
            f"decimal({precision},{scale}) needs 1 to {MAX_PRECISION} digits and no more decimals than that"
        )
    return Primitive("decimal", (precision, scale))


def _tokens(text: str) -> tuple[str, ...]:
    found = []
    rest = text.rstrip()
    place = 0
    while place < len(rest):
        token = _TOKEN.match(rest, place)
        if token is None:
            raise ValueError(f"unexpected {rest[place:].lstrip()[:1]!r}")
        found.append(token.group().lstrip())
        place = token.end()
    return tuple(found)


class _Parser:
    """Recursive descent over tokens; one lookahead, nesting bounded by MAX_DEPTH."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self._tokens = tokens
        self._place = 0

    def peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token:
            raise ValueError(f"it ends where {expected!r} should follow" if expected else "it ends too early")
        if expected and token.lower() != expected:
            raise ValueError(f"{expected!r} expected instead of {token!r}")
        self._place += 1
        return token

    def skip(self, *words: str) -> bool:
        """Take these words if all of them follow."""
        following = [token.lower() for token in self._tokens[self._place : self._place + len(words)]]
        if following != list(words):
            return False
        self._place += len(words)
        return True

    def type(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        node = self._head(depth)
        while self.skip("["):
            if self.peek() != "]":
                self._number()
            self.take("]")
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
            node = List(node)
        return node

    def _head(self, depth: int) -> Node:
        word = self.take()
        name = word.lower()
        if name == '"null"':
            return Primitive("null")
        if name in ("struct", "row"):
            return self._struct(depth)
        if name in ("list", "array"):
            close = self._open()
            element = self.type(depth + 1)
            self.take(close)
            return List(element)
        if name == "map":
            close = self._open()
            key = self.type(depth + 1)
            self.take(",")
            value = self.type(depth + 1)
            self.take(close)
            return Map(key, value)
        if name in _DECIMALS:
            return self._decimal(word)
        if name in _WIDE_INTEGERS:
            return decimal(_WIDE_INTEGERS[name], 0)
        if name == "fixed":
            close = "]" if self.skip("[") else ")"
            if close == ")":
                self.take("(")
            length = self._number()
            self.take(close)
            if length < 1:
                raise ValueError("fixed needs a length of at least 1")
            return Primitive("fixed", (length,))
        if name not in _NAME_OF:
            raise ValueError(f"{word!r} is not a type name")
        return self._simple(name)

    def _simple(self, word: str) -> Primitive:
        name = _NAME_OF[word]
        if word == "double":
            self.skip("precision")
        elif word in ("character", "char"):
            self.skip("varying")
        length = None
        if name in _WITH_LENGTH and self.skip("("):
            length = self._number()
            self.take(")")
        if name == "float" and length is not None and length > 24:
            name = "double"
        if name in ("timestamp", "timestamptz") and length is not None and length > 6:
            name += "_ns"
        if name in _ZONED and (self.skip("with", "time", "zone") or self.skip("with", "local", "time", "zone")):
            return Primitive(_ZONED[name])
        if name in _ZONED or name == "time":
            self.skip("without", "time", "zone")
        return Primitive(name)

    def _decimal(self, word: str) -> Primitive:
        # Engines disagree on what a bare DECIMAL means (10,0 in Spark, 18,3 in DuckDB), so none is assumed.
        if not self.skip("("):
            raise ValueError(f"{word} needs its digits, as in {word}(18,2)")
        precision = self._number()
        scale = self._number() if self.skip(",") else 0
        self.take(")")
        return decimal(precision, scale)

    def _struct(self, depth: int) -> Struct:
        close = self._open()
        fields: list[tuple[str, Node]] = []
        while self.peek() != close:
            if fields:
                self.take(",")
            name = self._field_name()
            self.skip(":")
            fields.append((name, self.type(depth + 1)))
            self.skip("not", "null")
        self.take(close)
        twice = [name for name, count in Counter(name for name, _ in fields).items() if count > 1]
        if twice:
            raise ValueError(f"field {twice[0]!r} occurs twice")
        return Struct(tuple(fields))

    def _open(self) -> str:
        if self.skip("<"):
            return ">"
        self.take("(")
        return ")"

    def _field_name(self) -> str:
        token = self.take()
        if token[0] in '`"':
            mark = token[0]
            return token[1:-1].replace(mark * 2, mark)
        if not re.fullmatch(r"\w+", token):
            raise ValueError(f"a field name expected instead of {token!r}")
        return token

    def _number(self) -> int:
        token = self.take()
        if not re.fullmatch(r"[0-9]{1,9}", token):
            raise ValueError(f"a number expected instead of {token!r}")
        return int(token)
