"""Python and the packages, against what this package declares that it needs."""

from __future__ import annotations

import operator
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version

from relayout.upkeep.findings import Finding, State

TOLD = ("pyspark", "pyiceberg", "duckdb", "pyarrow")
"""Packages whose versions are told also when all is well."""

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?(?P<bounds>[^;]*)(?:;(?P<marker>.*))?")
_BOUND = re.compile(r"(==|>=|<)([0-9.]+?)(\.\*)?$")
_COMPARE: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {">=": operator.ge, "<": operator.lt}


def python_in_use() -> Finding:
    """The interpreter; one that is too old could not even import this module."""
    where = f"{sys.executable} on {platform.system()} {platform.machine()}"
    return Finding("python", State.OK, f"Python {platform.python_version()} ({where})")


def packages_in_use() -> list[Finding]:
    """Each needed package with a version that fits."""
    findings = [
        finding
        for name, bounds in needed_packages(requires("relayout") or [])
        if (finding := package_finding(name, bounds)).state is not State.OK
    ]
    if findings:
        return findings
    told = ", ".join(f"{name} {version(name)}" for name in TOLD)
    return [Finding("packages", State.OK, f"relayout {version('relayout')} with {told}")]


def needed_packages(requirements: list[str]) -> Iterator[tuple[str, str]]:
    """Name and bounds of what is needed without any extra."""
    for requirement in requirements:
        parts = _REQUIREMENT.match(requirement)
        if parts is not None and "extra" not in (parts["marker"] or ""):
            yield parts["name"], parts["bounds"].strip()


def package_finding(name: str, bounds: str) -> Finding:
    """Whether the package is there in a version that fits."""
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding("packages", State.PROBLEM, f"{name} is not installed", f"pip install '{name}{bounds}'")
    if fits(found, bounds):
        return Finding("packages", State.OK, f"{name} {found}")
    what = f"{name} {found} is installed, relayout needs {name}{bounds}"
    return Finding("packages", State.PROBLEM, what, f"pip install '{name}{bounds}'")


def fits(found: str, bounds: str) -> bool:
    """Whether a version lies within bounds like `==4.1.*` or `>=2.2,<4`; bounds of other kinds are not judged."""
    return all(_within(_numbers(found), bound.strip()) for bound in bounds.split(",") if bound.strip())


def _within(found: tuple[int, ...], bound: str) -> bool:
    parts = _BOUND.match(bound)
    if parts is None:
        return True
    wanted = _numbers(parts[2])
    if parts[1] == "==":
        return found[: len(wanted)] == wanted if parts[3] else found == wanted
    return _COMPARE[parts[1]](found, wanted)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text.partition("+")[0]))
