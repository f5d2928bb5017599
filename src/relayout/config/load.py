"""The doors of the room: a file or a mapping → `Config`, or one `ConfigError` with every problem."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from relayout.config.build import build
from relayout.config.crosschecks import check
from relayout.config.document import FileSection
from relayout.config.messages import add_problems
from relayout.config.model import Config
from relayout.config.yaml_text import MAX_BYTES, MAX_DEPTH, Document, read_yaml
from relayout.config.yaml_text import Path as KeyPath
from relayout.errors import ConfigError, ConfigProblem, MissingError

FILE_NAME = "relayout.yaml"
MAPPING_NAME = "(mapping)"


def load(path: str | Path) -> Config:
    """Read a configuration file, or `relayout.yaml` in a folder; relative paths in it start at the file's folder."""
    given = Path(path)
    file = given / FILE_NAME if given.is_dir() else given
    document = read_yaml(_text(file), str(file))
    return _finish(document, os.path.dirname(os.path.abspath(file)))


def from_mapping(mapping: Mapping[str, Any], base_dir: Path | None = None) -> Config:
    """The same from Python values; relative paths start at `base_dir`, or at the current folder."""
    document = Document(MAPPING_NAME)
    document.data = _plain(document, mapping, (), 1)
    return _finish(document, os.path.abspath(base_dir or "."))


def json_schema() -> dict[str, Any]:
    """JSON Schema of the file for editors, shipped as `relayout.schema.json`."""
    schema = FileSection.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "relayout.yaml"}


def _text(file: Path) -> str:
    name = str(file)
    try:
        with open(file, "rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingError(
            "there is no configuration file",
            where=name,
            next="run `relayout init` to write one, or name it with -c FILE",
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError((ConfigProblem(name, 0, "the file", f"cannot be read: {reason}"),)) from error
    if len(content) > MAX_BYTES:
        problem = ConfigProblem(
            name, 0, "the file", f"is larger than {MAX_BYTES:,} bytes", "split it, or name the right file"
        )
        raise ConfigError((problem,))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError((ConfigProblem(name, line, "the file", "is not UTF-8 text", "save it as UTF-8"),)) from error


def _plain(document: Document, value: Any, path: KeyPath, depth: int) -> Any:
    """Python values as if YAML had been read: dicts with text keys, lists, scalars."""
    if value is None or isinstance(value, str | bool | int | float | date):
        return value
    if isinstance(value, Path):
        return str(value)
    if depth > MAX_DEPTH:
        document.problem((), f"nested more than {MAX_DEPTH} levels deep", "flatten it")
        return None
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                document.problem(path, f"the key {ascii(key)[:60]} is not a text", "use text keys")
        return {k: _plain(document, v, (*path, k), depth + 1) for k, v in value.items() if isinstance(k, str)}
    if isinstance(value, list | tuple):
        return [_plain(document, item, (*path, index), depth + 1) for index, item in enumerate(value)]
    document.problem(path, f"a {type(value).__name__} cannot be configured", "use texts, numbers, lists and mappings")
    return None


def _finish(document: Document, base_dir: str) -> Config:
    """Check everything that can be checked, then build, or say all that is wrong in the order of the lines."""
    section: FileSection | None = None
    unreadable = document.data is None and bool(document.problems)
    if document.data is not None and not isinstance(document.data, dict):
        document.problem((), "should hold keys and values", "start with `tables:`")
    elif not unreadable:
        check(document)
        try:
            section = FileSection.model_validate(document.data)
        except ValidationError as error:
            add_problems(document, error)
    if document.problems or section is None:
        ordered = sorted(dict.fromkeys(document.problems), key=lambda problem: problem.line)
        raise ConfigError(tuple(ordered))
    return build(section, document, base_dir)
