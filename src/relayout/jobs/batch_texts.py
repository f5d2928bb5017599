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

_HOW = "write it as year=2020 or year=2020,month=3, or as a JSON object"


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
            known = f"batches of {table} are told apart by {', '.join(columns)}" if columns else "it is one batch, {all}"
            raise UsageError(
                f"{name!r} is no batch column of {table}",
                where=f"batch {text}",
                next=f"did you mean {near[0]!r}?" if near else known,
            )
    found = {key for key in loaded if all(_holds(key, name, told, types, text) for name, told in conditions)}
    if not found:
        raise UsageError(
            f"no loaded batch of {table} is {text}", where=f"batch {text}", next=_nearest(text, loaded, types)
        )
    return found


def _conditions(text: str) -> Conditions:
    stripped = text.strip()
    told = _json_conditions(stripped)
    if told is None:
        inner = stripped[1:-1] if stripped.startswith("{") and stripped.endswith("}") else stripped
        told = () if inner != stripped and inner.strip() == "all" else tuple(map(_condition, inner.split(",")))
    names = [name for name, _ in told]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or "" in names:
        what = f"names {twice!r} twice" if twice else "is not a list of column=value"
        raise UsageError(f"the batch {text!r} {what}", next=_HOW)
    return told


def _condition(part: str) -> tuple[str, str | None]:
    name, equals, value = part.partition("=")
    plain = value.strip()
    return (name.strip() if equals else "", None if plain == "null" else plain)


def _json_conditions(text: str) -> Conditions | None:
    """The pairs of a JSON object with its numbers as they are written; None for any other text."""
    if not text.startswith("{"):
        return None
    try:
        pairs = json.loads(text, object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    return tuple((name, _text_of_json(name, value)) for name, value in pairs)


def _text_of_json(name: str, value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value
    raise UsageError(f"the value of {name!r} is not a single value", next=_HOW)


def _holds(key: BatchKey, name: str, told: str | None, types: Mapping[str, str], text: str) -> bool:
    """Whether the key has this value; ValueError becomes a UsageError, since no batch can ever have it."""
    held = dict(key.items)
    if name not in held:
        return False
    if told is None or held[name] is None:
        return told is None and held[name] is None
    try:
        return from_text(told, types.get(name) or _type_of(held[name])) == held[name]
    except ValueError as error:
        raise UsageError(f"{name}: {error}", where=f"batch {text}", next=f"a loaded one is {key}") from None


def _type_of(value: Scalar) -> str:
    """The type of a key value whose column the table no longer has."""
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
        return "nothing is loaded yet; `relayout plan` shows what there is to load"
    ...
