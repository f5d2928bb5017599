"""The page about `relayout.yaml`, from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from docs.markdown import code, table
from relayout.config import json_schema
from relayout.config.document import MEMORY

INTRODUCTION = """# `relayout.yaml`

Every key, its default and what it does. Only `tables` or `streams` is needed. Unknown keys are errors, and all problems
of a file are told at once, with their lines. A relative path starts at the folder of the file.

The same as a JSON Schema, for editors, is `relayout/config/relayout.schema.json` inside the installed package.
What each key means for ingestion is in [ingest](../ingest.md). `policy` and `streams` are read and
checked, and nothing acts on them yet.
"""

Schema = Mapping[str, Any]


def config_page() -> str:
    schema = json_schema()
    parts = [INTRODUCTION]
    for path, section in sections(schema, schema, ""):
        parts.append(f"## {code(path) if path else 'Top level'}\n\n" + _keys(schema, section))
    return "\n".join(parts)


def sections(root: Schema, section: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Path and schema of every mapping with fixed keys, from the top down."""
    yield path, section
    for key, told in section["properties"].items():
        for inner, suffix in _inner_sections(root, told):
            yield from sections(root, inner, (f"{path}." if path else "") + key + suffix)


def _inner_sections(root: Schema, told: Schema) -> Iterator[tuple[Schema, str]]:
    if "$ref" in told:
        yield root["$defs"][told["$ref"].rpartition("/")[2]], ""
    for choice in (*told.get("anyOf", ()), *told.get("oneOf", ())):
        yield from _inner_sections(root, choice)
    if isinstance(told.get("additionalProperties"), Mapping):
        yield from ((inner, ".NAME" + suffix) for inner, suffix in _inner_sections(root, told["additionalProperties"]))
    if isinstance(told.get("items"), Mapping):
        yield from ((inner, "[]" + suffix) for inner, suffix in _inner_sections(root, told["items"]))


def _keys(root: Schema, section: Schema) -> str:
    needed = set(section.get("required", ()))
    rows = [
        (code(key), _type(root, told), "needed" if key in needed else _default(told), told.get("description", ""))
        for key, told in section["properties"].items()
    ]
    return table(("key", "value", "default", "meaning"), rows)


def _default(told: Schema) -> str:
    value = told.get("default")
    # Nothing, an empty list and a section whose keys have defaults of their own all read as "leave it out".
    return "" if value is None or isinstance(value, list | dict) else code(json.dumps(value).strip('"'))


def _type(root: Schema, told: Schema) -> str:
    if values := told.get("enum", [told["const"]] if "const" in told else []):
        return " or ".join(code(str(value)) for value in values)
    if choices := [choice for choice in (*told.get("anyOf", ()), *told.get("oneOf", ())) if choice != {"type": "null"}]:
        return " or ".join(dict.fromkeys(_type(root, choice) for choice in choices))
    if "$ref" in told:
        return "section"
    if told.get("type") == "array":
        return f"list of {_type(root, told['items'])}s"
    if told.get("type") == "object":
        inner = told.get("additionalProperties")
        return f"{_type(root, inner)} by name" if isinstance(inner, Mapping) else "section"
    return _scalar(told)


def _scalar(told: Schema) -> str:
    kind = told["type"]
    names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    name = names[kind] if isinstance(kind, str) else " or ".join(names[one] for one in kind)
    if told.get("examples"):
        return f"{name} such as " + ", ".join(code(str(example)) for example in told["examples"])
    if "minimum" in told and "maximum" in told:
        return f"{name}, {told['minimum']:,} to {told['maximum']:,}"
    if told.get("pattern") == MEMORY["pattern"]:
        return "size such as `4g`"
    return name
