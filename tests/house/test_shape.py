"""Modules and functions stay small enough to read, say what they are for, and leave nothing unfinished."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping

MODULE_LINES = 500
FUNCTION_LINES = 60

# A name that says nothing about what is inside attracts everything.
EMPTY_WORDS = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
EMPTY_NAMES = {"base"}

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def long_modules(name: str, source: str) -> Iterator[str]:
    lines = source.count("\n")
    if lines > MODULE_LINES:
        yield f"{name}: {lines} lines, more than {MODULE_LINES}"


def long_functions(name: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{name}:{node.lineno}: {node.name} has {lines} lines, more than {FUNCTION_LINES}"


def missing_docstrings(name: str, source: str) -> Iterator[str]:
    """Modules and public classes explain themselves; a package marker may be empty."""
    tree = ast.parse(source)
    if tree.body and not ast.get_docstring(tree):
        yield f"{name}:1: the module has no docstring"
    for node in public_classes(tree):
        if not ast.get_docstring(node):
            yield f"{name}:{node.lineno}: class {node.name} has no docstring"


def public_classes(scope: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef]:
    for node in scope.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node
            yield from public_classes(node)


def empty_names(module: str) -> Iterator[str]:
    for part in module.split("."):
        if part in EMPTY_NAMES or EMPTY_WORDS & set(part.split("_")):
            yield f"{module}: {part} says nothing about what is inside"


def unfinished(name: str, source: str) -> Iterator[str]:
    """Marks in comments, and code that only pretends: NotImplementedError, handlers that swallow."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and (mark := UNFINISHED.search(token.string)):
            yield f"{name}:{token.start[0]}: {mark[0]}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == "NotImplementedError":
            yield f"{name}:{node.lineno}: {node.id}"
        elif isinstance(node, ast.ExceptHandler) and all(does_nothing(statement) for statement in node.body):
            yield f"{name}:{node.lineno}: an error is swallowed; contextlib.suppress says it aloud"


def does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def test_modules_are_short(code: Mapping[str, str]) -> None:
    faults = [fault for path, source in code.items() for fault in long_modules(path, source)]
    assert not faults, "\n".join(faults)


def test_functions_are_short(package: Mapping[str, str]) -> None:
    faults = [fault for module, source in package.items() for fault in long_functions(module, source)]
    assert not faults, "\n".join(faults)


def test_modules_and_public_classes_say_what_they_are_for(package: Mapping[str, str]) -> None:
    faults = [fault for module, source in package.items() for fault in missing_docstrings(module, source)]
    assert not faults, "\n".join(faults)


def test_module_names_say_what_is_inside(package: Mapping[str, str]) -> None:
    faults = [fault for module in package for fault in empty_names(module)]
    assert not faults, "\n".join(faults)


def test_nothing_is_left_unfinished(code: Mapping[str, str]) -> None:
    faults = [fault for path, source in code.items() for fault in unfinished(path, source)]
    assert not faults, "\n".join(faults)


# Each rule is broken here on purpose.


def test_a_long_module_is_caught() -> None:
    assert list(long_modules("m", "x = 1\n" * 501)) == ["m: 501 lines, more than 500"]
    assert list(long_modules("m", "x = 1\n" * 500)) == []


def test_a_long_function_is_caught_also_inside_a_class() -> None:
    method = "class A:\n    async def f(self):\n" + "        x = 1\n" * 60
    assert list(long_functions("m", method)) == ["m:2: f has 61 lines, more than 60"]
    assert list(long_functions("m", "def f():\n" + "    x = 1\n" * 59)) == []


def test_silence_is_caught() -> None:
    assert list(missing_docstrings("m", "x = 1")) == ["m:1: the module has no docstring"]
    assert list(missing_docstrings("m", '"""M."""\nclass A:\n    x = 1')) == ["m:2: class A has no docstring"]
    assert list(missing_docstrings("m", '"""M."""\nclass _A:\n    class B:\n        x = 1')) == []
    assert list(missing_docstrings("m", "")) == []


def test_empty_names_are_caught() -> None:
    for module in ["relayout.utils", "relayout.table.string_helpers", "relayout.spark.manager", "relayout.base"]:
        assert len(list(empty_names(module))) == 1, module
    assert list(empty_names("relayout.alternates.base_snapshot")) == []


def test_unfinished_work_is_caught() -> None:
    planted = {
        "x = 1  # TODO later": ["m:1: TODO"],
        "# FIXME": ["m:1: FIXME"],
        "raise NotImplementedError": ["m:1: NotImplementedError"],
        "raise NotImplementedError('x')": ["m:1: NotImplementedError"],
    }
    for source, faults in planted.items():
        assert list(unfinished("m", source)) == faults, source
    for body in ["pass", "...", "'nothing to do'"]:
        source = f"try:\n    f()\nexcept OSError:\n    {body}\n"
        assert len(list(unfinished("m", source))) == 1, body
    assert list(unfinished("m", "text = 'TODO'\ntry:\n    f()\nexcept OSError:\n    x = 1\n")) == []
