"""Batches as people name them in a command, matched with the keys of loaded batches."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence

from relayout.errors import UsageError
from relayout.table.batches import BatchKey, Scalar
from relayout.table.types import from_text

MOST_NAMED = 10
"""How many batches an error message names."""

Conditions = tuple[tuple[str, str | None], ...]
"""Columns and the texts of their values; None is null."""

HOW = """write it as year=2020 or year=2020,month=3, or as JSON: {"year": 2020}"""


def named_batches(
    texts: Iterable[str], table: str, loaded: Sequence[BatchKey], types: Mapping[str, str]
) -> list[BatchKey]:
    """The keys that the texts mean, each once, in the order of `loaded`; UsageError for a text that means none.

    A text is `year=2020,month=3`, with or without braces around it. It means every batch with these values, so it may
    name some of the columns only; `{all}` names none. A bare `null` is null. Names and values that hold a comma or an
    equals sign, begin or end with a space, or are the word null, stand in a JSON object: `{"city": "Paris, TX"}`.
    `types` are those of the table's columns; a value is compared as its column's type, so `03` means month 3.
    """
    meant: set[BatchKey] = set()
    for text in texts:
        meant |= _meant(text, table, loaded, types)
    return [key for key in loaded if key in meant]


def _meant(text: str, table: str, loaded: Sequence[BatchKey], types: Mapping[str, str]) -> set[BatchKey]:
    conditions = _conditions(text)
    columns = dict.fromkeys(name for key in loaded for name in key.columns)
    for name, _ in conditions:
        if loaded and name not in columns:
            near = difflib.get_close_matches(name[:80], columns, n=1)
            known = f"batch columns: {', '.join(columns)}" if columns else "the whole table is one batch, {all}"
            raise UsageError(
                f"{name!r} is no batch column of {table}",
                where=f"batch {text}",
                next=f"did you mean {near[0]!r}?" if near else known,
            )
    found = {key for key in loaded if all(_holds(key, name, told, types, text) for name, told in conditions)}
    if not found:
        raise UsageError(f"{table} has no loaded batch like that", where=f"batch {text}", next=_nearest(text, loaded))
    return found


def _conditions(text: str) -> Conditions:
    stripped = text.strip()
    told = _json_conditions(stripped)
    if told is None:
        inside = stripped[1:-1] if stripped.startswith("{") and stripped.endswith("}") else stripped
        told = () if stripped == "{all}" else tuple(_condition(part) for part in inside.split(","))
    names = [name for name, _ in told]
    if "" in names:
        raise UsageError(f"{text!r} does not name a batch", next=HOW)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"{text!r} names {twice[0]!r} twice", next="give --batch once per value")
    return told


def _condition(part: str) -> tuple[str, str | None]:
    """A column and a value; without an equals sign there is no column."""
    name, equals, value = part.partition("=")
    plain = value.strip()
    return (name.strip() if equals else "", None if plain == "null" else plain)


def _json_conditions(text: str) -> Conditions | None:
    """The pairs of a JSON object, numbers as they are written; None for any other text."""
    if not text.startswith("{"):
        return None
    try:
        pairs = json.loads(text, object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    return tuple((name, _json_value(name, value)) for name, value in pairs)


def _json_value(name: str, value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value
    raise UsageError(f"the value of {name!r} is not a single value", next=HOW)


def _holds(key: BatchKey, name: str, told: str | None, types: Mapping[str, str], text: str) -> bool:
    """Whether the key has this value; a text that cannot be a value of the column is a UsageError."""
    values = dict(key.items)
    if name not in values:
        return False
    if told is None or values[name] is None:
        return told is None and values[name] is None
    try:
        return from_text(told, types.get(name) or _type_of(values[name])) == values[name]
    except ValueError as error:
        raise UsageError(f"{name}: {error}", where=f"batch {text}", next=f"a loaded batch is {key}") from None


def _type_of(value: Scalar) -> str:
    """The type of a value whose column the table no longer has."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "long"
        case float():
            return "double"
        case _:
            return "string"


def _nearest(text: str, loaded: Sequence[BatchKey]) -> str:
    if not loaded:
        return "nothing is loaded; `relayout plan` shows what could be"
    names = [str(key) for key in loaded]
    if len(names) <= MOST_NAMED:
        return f"loaded: {', '.join(names)}"
    near = difflib.get_close_matches(text[:80], names, n=MOST_NAMED // 2, cutoff=0.0)
    return f"the most like it of {len(names):,} loaded ones: {', '.join(near)}"
