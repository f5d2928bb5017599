"""Checks and normal forms of the short texts in a configuration: names, columns, types, transforms, settings.

Each function returns the normal form or raises `Wrong` with what is the matter and what to write instead.
"""

from __future__ import annotations

import difflib
import re
from datetime import date, datetime
from typing import Any

from relayout.config.model import ALTERNATE_PREFIX, OWN_TABLES
from relayout.config.quantities import duration_seconds, memory_bytes, size_bytes
from relayout.config.yaml_text import WrittenFloat


class Wrong(ValueError):
    """A text that does not fit, and what would."""

    def __init__(self, what: str, next: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.next = next


def shown(value: object) -> str:
    """A value in a message: one line, quoted, never long."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def as_text(value: Any) -> str:
    """A text, and nothing that YAML took for something else."""
    if isinstance(value, str):
        if any(0xD800 <= ord(letter) <= 0xDFFF for letter in value):
            raise Wrong(f"{shown(value)} holds half a character", "write the whole character, in UTF-8")
        return value
    if value is None:
        raise Wrong("has no value", "write a text")
    if isinstance(value, dict | list):
        raise Wrong("should be one text", "write it in one line")
    raise Wrong(f"{shown(as_setting(value))} is not a text in YAML", "put it in quotes")


def as_setting(value: Any) -> str:
    """The text of a setting for Spark, Kafka or a catalog, where numbers and booleans are natural to write."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, WrittenFloat):
        return value.text
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    raise Wrong("should be a text, a number or true/false", "write one value in one line")


def name(value: Any) -> str:
    """A non-empty name without control characters."""
    text = as_text(value)
    if not text.strip():
        raise Wrong("is empty", "give it a name")
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text):
        raise Wrong(f"{shown(text)} has control characters", "use printable characters")
    if len(text) > 255:
        raise Wrong(f"the name has {len(text)} characters", "use at most 255")
    return text


def table_name(value: Any) -> str:
    """A name that is free to use and stays inside the warehouse's folder when it becomes one."""
    text = name(value)
    if text.startswith(ALTERNATE_PREFIX):
        raise Wrong(f"names that start with {ALTERNATE_PREFIX} belong to alternates", "choose another name")
    if text in OWN_TABLES:
        raise Wrong(f"{text} is relayout's own table", "choose another name")
    if "/" in text or "\\" in text or text in (".", ".."):
        raise Wrong(f"{shown(text)} would become a path", "use a name without slashes")
    return text


def namespace(value: Any) -> str:
    """One or more names with dots between them."""
    text = name(value)
    if "/" in text or "\\" in text or not all(part.strip() for part in text.split(".")):
        raise Wrong(f"{shown(text)} is not a namespace", "write a name such as `econ`, levels with dots between")
    return text


def column(value: Any) -> str:
    """A column name; anything printable or not, because data decides what columns are called."""
    text = as_text(value)
    if not text:
        raise Wrong("is an empty column name", "name a column")
    return text


def sort_text(value: Any) -> str:
    """`col` or `col desc`; the direction in lower case, `asc` left out because it is the default."""
    text = column(value).strip()
    match = re.fullmatch(r"(.*\S)\s+(asc|desc)", text, re.IGNORECASE | re.DOTALL)
    if match is None:
        if re.search(r"\snulls\s+(first|last)$", text, re.IGNORECASE):
            raise Wrong(f"{shown(text)} says where nulls go", "write `column` or `column desc`; nulls come first")
        return column(text)
    return match[1] if match[2].lower() == "asc" else f"{match[1]} desc"


_TRANSFORM = re.compile(r"(bucket|truncate)\s*[\[(]\s*([0-9]{1,10})\s*[\])]", re.IGNORECASE)
_PLAIN_TRANSFORMS = ("identity", "year", "month", "day", "hour")


def transform(value: Any) -> str:
    """A partition transform in Iceberg's spelling: `bucket(16)` → `bucket[16]`, `days` → `day`."""
    text = as_text(value).strip()
    plain = text.lower()
    if plain.rstrip("s") in _PLAIN_TRANSFORMS:
        return plain.rstrip("s")
    match = _TRANSFORM.fullmatch(text)
    if match and 0 < int(match[2]) < 2**31:
        return f"{match[1].lower()}[{int(match[2])}]"
    if plain in ("bucket", "truncate"):
        raise Wrong(f"{plain} needs its number", f"write `{plain}[16]`")
    near = difflib.get_close_matches(plain[:40], [*_PLAIN_TRANSFORMS, "bucket[N]", "truncate[N]"], n=1, cutoff=0.6)
    every = "one of: identity, bucket[N], truncate[N], year, month, day, hour"
    raise Wrong(f"{shown(text)} is not a transform", f"did you mean `{near[0]}`?" if near else every)


_TYPE_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        boolean bool tinyint smallint short byte int integer long bigint hugeint int1 int2 int4 int8 int16 int32 int64
        utinyint usmallint uinteger ubigint uint8 uint16 uint32 uint64 signed float real double float4 float8 float32
        float64 decimal dec numeric number date time timestamp timestamptz timestamp_ntz timestamp_ltz timestamp_s
        timestamp_ms timestamp_us timestamp_ns timestamptz_ns datetime string varchar char character nvarchar bpchar
        text str json uuid guid binary varbinary blob bytea bytes fixed struct row list array map variant unknown null
        """,
    )
)
_BRACKETS = {")": "(", ">": "<", "]": "["}


def type_text(value: Any) -> str:
    """A type as declared, in any usual spelling; only its form and its first word are judged here."""
    text = as_text(value).strip()
    head = re.match(r"[A-Za-z_][A-Za-z0-9_]*", text)
    if head is None or len(text) > 10_000:
        raise Wrong(f"{shown(text)} is not a type", "write a type such as INTEGER, VARCHAR or decimal(18,2)")
    word = head[0].lower()
    if word not in _TYPE_WORDS:
        near = difflib.get_close_matches(word[:40], sorted(_TYPE_WORDS), n=1, cutoff=0.6)
        known = (
            "known: boolean, int, long, float, double, decimal(p,s), date, time, timestamp, timestamptz, string, ..."
        )
        raise Wrong(f"{shown(text)} is not a type", f"did you mean {near[0].upper()}?" if near else known)
    open_brackets: list[str] = []
    for letter in text:
        if letter in "(<[":
            open_brackets.append(letter)
        elif letter in _BRACKETS and (not open_brackets or open_brackets.pop() != _BRACKETS[letter]):
            raise Wrong(f"{shown(text)} has a {letter} that closes nothing", "check the brackets")
    if open_brackets:
        raise Wrong(f"{shown(text)} lacks the closing bracket of {open_brackets[-1]}", "check the brackets")
    return text


def expression(value: Any) -> str:
    """A Spark SQL expression: a text is one as written, any other scalar becomes the literal that it is."""
    if isinstance(value, str):
        if not value.strip():
            raise Wrong("is an empty expression", "for an empty text write \"''\"")
        return value
    if value is None:
        raise Wrong("has no value", "for nulls write `cast(null as string)`")
    if isinstance(value, date):
        return "'" + value.isoformat(*((" ",) if isinstance(value, datetime) else ())) + "'"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"double('{'NaN' if value != value else 'Infinity' if value > 0 else '-Infinity'}')"
    return as_setting(value)


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def source_pattern(value: Any) -> str:
    """Where files are, as written: a local pattern or one below `s3://bucket/`."""
    text = as_text(value)
    if not text.strip():
        raise Wrong("is an empty pattern", "write where the files are, such as `downloads/*.json`")
    if "\0" in text:
        raise Wrong("has a NUL character", "write where the files are, such as `downloads/*.json`")
    scheme = _SCHEME.match(text)
    if scheme and scheme[1].lower() in ("s3a", "s3n"):
        raise Wrong(f"{shown(text)} starts with {scheme[0]}", "write s3://")
    if scheme and scheme[1] != "s3":
        raise Wrong(f"{shown(text)} is not a local path and not on S3", "write a path or s3://bucket/...")
    if scheme and not re.match(r"s3://[^/*?{\[]+/.", text):
        raise Wrong(f"{shown(text)} names no bucket with something in it", "write s3://bucket/folder/*.json")
    if re.sub(r"\{[^{}/]+\}", "", text).count("{") or re.sub(r"\{[^{}/]+\}", "", text).count("}"):
        raise Wrong(f"{shown(text)} has a brace that names no column", "write captures as {year}")
    return text


def memory(value: Any) -> str:
    """A memory size that Spark accepts."""
    try:
        memory_bytes(text := as_setting(value))
    except ValueError as error:
        raise Wrong(
            f"{shown(value)} is not a memory size", "write a whole number with k, m, g or t, such as 4g"
        ) from error
    return text


def size(value: Any) -> int:
    """Bytes."""
    try:
        count = size_bytes(as_setting(value))
    except ValueError as error:
        raise Wrong(f"{shown(value)} is not a size", "write a size such as 50gb or 512mb") from error
    if count < 1:
        raise Wrong("should be more than nothing", "write a size such as 50gb, or leave it out")
    return count


def seconds(value: Any) -> float:
    """Seconds of a duration that is more than nothing."""
    try:
        length = duration_seconds(as_setting(value))
    except ValueError as error:
        raise Wrong(
            f"{shown(value)} is not a duration", "write it with its unit, such as 30s, 5m, 12h or 7d"
        ) from error
    if length <= 0:
        raise Wrong("should be more than nothing", "write a duration such as 30s")
    return length


def days(value: Any) -> float:
    return seconds(value) / 86400.0
