"""No file that is committed knows the machine it was written on, or where packages are downloaded from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

# Hosts of package registries, and options that point pip or other tools at one.
REGISTRY = re.compile(
    r"pypi[.]org|pythonhosted[.]org|repo1?[.]maven|maven[.]apache[.]org|maven[.]google|oss[.]sonatype|registry[.]npmjs"
    r"|registry[.]yarnpkg|crates[.]io|proxy[.]golang|anaconda[.]org|artifactor[y]|rubygems[.]org|https?://\S+[/+]simple\b"
    r"|-[-](?:extra-)?index-url\b|-[-]find-links\b|-[-]trusted-host\b|\b(?:extra-)?index-url\s*=",
    re.IGNORECASE,
)
# Absolute paths of somebody's machine; the same words further down a path or inside an address mean nothing.
MACHINE_PATH = re.compile(r"(?<![\w./~:*-])(?:file://)?/(?:work|root|opt/wheels|tmp/w|home/\w+|Users/\w+)(?![\w.-])")

# In a lock file not even a path has a place.
ADDRESS = re.compile(r"\w+://|@ file|(?<![\w.])/[a-z]", re.IGNORECASE)


def addresses_in(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in (REGISTRY, MACHINE_PATH):
            if found := pattern.search(line):
                yield f"{number}: {found[0].strip()}"


def test_no_file_names_a_registry_or_a_machine(project: Mapping[str, str]) -> None:
    assert len(project) > 10
    faults = [f"{path}:{found}" for path, text in project.items() for found in addresses_in(text)]
    assert not faults, "\n".join(faults)


def test_locked_requirements_hold_names_versions_and_hashes_only(project: Mapping[str, str]) -> None:
    locks = {path: text for path, text in project.items() if re.fullmatch(r"requirements/\w+[.]txt", path)}
    assert set(locks) >= {"requirements/dev.txt", "requirements/run.txt"}
    for path, text in locks.items():
        assert [line for line in text.splitlines() if ADDRESS.search(line)] == [], path
        pins = re.findall(r"^[a-z0-9][\w.-]*(?:\[[\w,.-]+\])?==\S+(.*)$", text, re.MULTILINE | re.IGNORECASE)
        assert len(pins) > 10, path
        assert all(rest.endswith("\\") for rest in pins), f"{path}: a requirement without a hash"


def test_the_run_set_is_part_of_the_development_set(project: Mapping[str, str]) -> None:
    run, dev = (
        set(re.findall(r"^([\w.-]+)(?:\[[^]]*\])?(==\S+)", project[f"requirements/{name}.txt"], re.MULTILINE))
        for name in ("run", "dev")
    )
    assert run - dev == set()


# Each rule is broken here on purpose; the planted text is put together so that this file passes its own test.


@pytest.mark.parametrize(
    "planted",
    [
        ".".join(["https://files", "pythonhosted", "org/packages/x.whl"]),
        ".".join(["see pypi", "org"]),
        ".".join(["https://repo1", "maven", "org/maven2"]),
        "-".join(["", "", "index", "url http://10.0.0.1:3141"]),
        "-".join(["", "", "find", "links wheels"]),
        "https://mirror.example/main/+" + "simple/",
        "open('" + "/" + "work/main/x')",
        "cd " + "/" + "root",
        "path: " + "/" + "tmp/w/v/bin/python",
        "file://" + "/" + "home/me/relayout",
    ],
)
def test_an_address_is_caught(planted: str) -> None:
    assert len(list(addresses_in("fine\n" + planted))) == 1


@pytest.mark.parametrize(
    "innocent",
    [
        "https://iceberg.apache.org/spec/",
        "127.0.0.1:9092",
        "src/work/root/x.py",
        "s3://bucket/work/a",
        "/tmp/lake",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "docs/workshop and /workspace",
        "simple/plain",
    ],
)
def test_ordinary_text_passes(innocent: str) -> None:
    assert list(addresses_in(innocent)) == []


def test_without_git_the_tree_is_walked_past_what_is_generated(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    conftest = next(
        plugin
        for plugin in request.config.pluginmanager.get_plugins()
        if Path(getattr(plugin, "__file__", None) or "").parent == Path(__file__).parent
        and Path(plugin.__file__).name == "conftest.py"
    )
    for name in ["src/a.py", ".ci/run", ".venv/b.py", ".git/config", "src/__pycache__/a.pyc", ".mypy_cache/x.json"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    found = {path.relative_to(tmp_path).as_posix() for path in conftest.walk(tmp_path)}
    assert found == {"src/a.py", ".ci/run"}
