"""The routing rule's jar: ordinary, repeatable, made once."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from relayout.spark.route.jar import EXTENSION, cached_jar, jar_of, source

CLASSES = {"relayout.spark.Routing": b"one", "relayout.spark.Routing$1": b"two"}


def test_the_same_classes_make_the_same_jar_in_any_order() -> None:
    assert jar_of(CLASSES) == jar_of(dict(reversed(CLASSES.items())))
    with zipfile.ZipFile(io.BytesIO(jar_of(CLASSES))) as jar:
        assert jar.namelist() == [
            "META-INF/MANIFEST.MF",
            "relayout/spark/Routing.class",
            "relayout/spark/Routing$1.class",
        ]
        assert jar.read("relayout/spark/Routing.class") == b"one"


def test_the_rule_is_compiled_once_for_each_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path))
    compiled: list[str] = []

    def compile_source(text: str) -> Mapping[str, bytes]:
        compiled.append(text)
        return CLASSES

    first = cached_jar(compile_source, "4.1.4")
    assert cached_jar(compile_source, "4.1.4") == first
    assert cached_jar(compile_source, "4.1.5") != first
    assert compiled == [source(), source()]
    assert [path.suffix for path in first.parent.iterdir()] == [".jar", ".jar"]


def test_the_source_holds_the_extension_and_nothing_that_its_compiler_lacks() -> None:
    package, _, name = EXTENSION.rpartition(".")
    assert source().startswith(f"package {package};")
    assert f"public class {name} " in source()
    assert "->" not in source()
