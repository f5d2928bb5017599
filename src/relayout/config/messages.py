"""What the validator found, in plain words with the line and what to write instead."""

from __future__ import annotations

import types
from typing import Any, get_args, get_origin

from pydantic import ValidationError

from relayout.config.document import FileSection, Section
from relayout.config.hints import key_hint, value_hint
from relayout.config.words import shown
from relayout.config.yaml_text import Document, Path

_SHAPES = {
    "model_type": ("should hold keys and values", "write `key: value` lines below it"),
    "dict_type": ("should hold keys and values", "write `key: value` lines below it"),
    "list_type": ("should be a list", "write it as [a, b]"),
    "too_short": ("is an empty list", "name at least one, or leave it out"),
    "int_type": ("should be a whole number", "write digits without quotes or unit"),
    "float_type": ("should be a number", "write digits without quotes or unit"),
    "finite_number": ("should be a number", "write digits without quotes or unit"),
    "string_pattern_mismatch": ("has characters that do not fit a file name", "use letters, digits, `.`, `_` and `-`"),
    "string_type": ("should be a text", "put it in quotes"),
}
_MISSING = {"from": "write `from: {files: ...}` or `from: {kafka: {...}}`"}


def add_problems(document: Document, error: ValidationError) -> None:
    """Turn each finding into one problem of the document."""
    for found in error.errors(include_url=False):
        where: Path = tuple(found["loc"])
        kind, value, context = found["type"], found["input"], found.get("ctx", {})
        if where and where[-1] == "[key]":
            where = where[:-1]
        if kind == "relayout":
            document.problem(where, context["what"], context["next"])
        elif kind == "extra_forbidden":
            document.problem(where, "unknown key", _unknown_key(where))
        elif kind == "missing":
            document.problem(where, "is needed", _MISSING.get(str(where[-1]), "write it"))
        elif kind == "literal_error":
            document.problem(where, f"{shown(value)} is not known", value_hint(value, _choices(where)))
        elif kind in ("model_type", "list_type") and where[-1:] in (("partitions",), ("partition",)):
            document.problem(where, "should hold `keys`", f"write `{where[-1]}: {{keys: [...]}}`")
        elif kind in _SHAPES:
            document.problem(where, *_SHAPES[kind])
        elif "ge" in context or "le" in context:
            bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
            document.problem(where, f"{shown(value)} is out of range", f"write {bound}")
        else:
            document.problem(where, found["msg"])


def _unknown_key(where: Path) -> str:
    section = _at(where[:-1])
    if not (isinstance(section, type) and issubclass(section, Section)):
        return ""
    known = [field.alias or name for name, field in section.model_fields.items()]
    return key_hint(section.__name__.removesuffix("Section").lower(), str(where[-1]), known)


def _choices(where: Path) -> list[str]:
    return [str(choice) for choice in get_args(_at(where))]


def _at(where: Path) -> Any:
    """The declared shape of the thing at a path: a section, a list, a mapping or a choice."""
    shape: Any = FileSection
    for part in where:
        if isinstance(shape, type) and issubclass(shape, Section):
            fields = {field.alias or name: field.annotation for name, field in shape.model_fields.items()}
            shape = _bare(fields.get(str(part)))
        else:
            arguments = get_args(shape)
            shape = _bare(arguments[-1]) if arguments else None
    return shape


def _bare(shape: Any) -> Any:
    """A shape without its checks and without `None`."""
    while True:
        if hasattr(shape, "__metadata__"):
            shape = get_args(shape)[0]
        elif get_origin(shape) is types.UnionType or type(None) in get_args(shape):
            shape = next(argument for argument in get_args(shape) if argument is not type(None))
        else:
            return shape
