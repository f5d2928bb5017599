"""The routing rule as a jar, from what the compiler inside Spark makes of its source; no Java kit is needed."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from relayout import __version__
from relayout.spark.jars import cache_folder

EXTENSION = "relayout.spark.Routing"
"""What `spark.sql.extensions` names."""

Compile = Callable[[str], Mapping[str, bytes]]
"""Java source → class name → class file."""

_SAME_TIME = (1980, 1, 1, 0, 0, 0)
_MANIFEST = f"Manifest-Version: 1.0\r\nImplementation-Title: relayout\r\nImplementation-Version: {__version__}\r\n\r\n"


def source() -> str:
    return (files("relayout.spark.route") / "Routing.java").read_text("utf-8")


def cached_jar(compile_source: Compile, spark_version: str) -> Path:
    """The jar in the cache, compiled now unless this source was compiled for this Spark before."""
    text = source()
    digest = hashlib.sha256(f"{spark_version}\n{__version__}\n{text}".encode()).hexdigest()[:16]
    path = cache_folder() / "routing" / f"relayout-routing-{digest}.jar"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_bytes(jar_of(compile_source(text)))
        fresh.replace(path)
    return path


def jar_of(classes: Mapping[str, bytes]) -> bytes:
    """A jar with these classes; the same classes always make the same bytes."""
    written = io.BytesIO()
    entries = {"META-INF/MANIFEST.MF": _MANIFEST.encode()}
    entries |= {f"{name.replace('.', '/')}.class": classes[name] for name in sorted(classes)}
    with zipfile.ZipFile(written, "w") as jar:
        for name, content in entries.items():
            jar.writestr(zipfile.ZipInfo(name, _SAME_TIME), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()
