"""Jars: exactly the pinned ones, fetched once, and nothing else is ever handed to Spark."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from relayout.config import from_mapping
from relayout.errors import EnvironmentProblem
from relayout.spark.jars import AWS, ICEBERG, POSTGRESQL, SQLITE, Jar, cache_folder, ensure_jars, jars_for


def jar(name: str, content: bytes | None = None) -> Jar:
    return Jar("org.example", name, "1.0", hashlib.sha256(content or name.encode()).hexdigest())


ONE, OTHER = jar("one"), jar("other")
WANTED = (ONE, OTHER)


class Repository:
    """Answers as Spark's resolver does, with the name of each artifact as its content, and counts the questions."""

    def __init__(self, *, lacks: str = "", damages: str = "") -> None:
        self.asked: list[list[str]] = []
        self._lacks, self._damages = lacks, damages

    def __call__(self, coordinates: Iterable[str], folder: Path) -> None:
        self.asked.append(list(coordinates))
        (folder / "jars").mkdir(parents=True)
        for coordinate in self.asked[-1]:
            group, artifact, version = coordinate.split(":")
            if artifact != self._lacks:
                content = b"something else" if artifact == self._damages else artifact.encode()
                (folder / "jars" / f"{group}_{artifact}-{version}.jar").write_bytes(content)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the jars in a cache that is not there yet."""
    monkeypatch.delenv("RELAYOUT_JARS", raising=False)
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "jars"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_missing_jars_are_fetched_together_and_only_once(cache: Path) -> None:
    repository = Repository()
    paths = [str(cache / "one-1.0.jar"), str(cache / "other-1.0.jar")]
    assert ensure_jars(WANTED, repository) == paths
    assert ensure_jars(WANTED, repository) == paths
    assert repository.asked == [["org.example:one:1.0", "org.example:other:1.0"]]
    assert names_in(cache) == ["one-1.0.jar", "other-1.0.jar"]


@pytest.mark.usefixtures("cache")
def test_only_what_is_missing_is_fetched() -> None:
    ensure_jars([ONE], Repository())
    repository = Repository()
    ensure_jars(WANTED, repository)
    assert repository.asked == [["org.example:other:1.0"]]


def test_a_fetched_jar_with_another_content_is_not_kept(cache: Path) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        ensure_jars(WANTED, Repository(damages="other"))
    found = hashlib.sha256(b"something else").hexdigest()
    name = "org.example_other-1.0.jar"
    assert caught.value.what == f"{name} is not the expected file: SHA-256 {found}, pinned {OTHER.sha256}"
    assert names_in(cache) == ["one-1.0.jar"]


def test_a_repository_without_the_jar_is_told(cache: Path) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        ensure_jars(WANTED, Repository(lacks="one"))
    assert caught.value.what == "org.example:one:1.0 could not be fetched"
    assert "RELAYOUT_JARS" in caught.value.next
    assert names_in(cache) == []


def test_nothing_is_left_of_a_fetch_that_fails(cache: Path) -> None:
    def broken(_: Iterable[str], folder: Path) -> None:
        (folder / "jars").mkdir(parents=True)
        raise EnvironmentProblem("no network")

    with pytest.raises(EnvironmentProblem, match="no network"):
        ensure_jars(WANTED, broken)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("content", [b"ONE", b"longer than it was"])
def test_a_jar_that_is_altered_later_is_noticed(cache: Path, content: bytes) -> None:
    ensure_jars(WANTED, Repository())
    jar_file = cache / "one-1.0.jar"
    before = jar_file.stat().st_mtime_ns
    jar_file.write_bytes(content)
    os.utime(jar_file, ns=(before + 1, before + 1))
    repository = Repository()
    with pytest.raises(EnvironmentProblem) as caught:
        ensure_jars(WANTED, repository)
    assert caught.value.what.startswith("one-1.0.jar is not the expected file: SHA-256 ")
    assert caught.value.where == str(cache)
    assert repository.asked == []


@pytest.mark.usefixtures("cache")
def test_a_pin_that_changes_is_checked_against_the_file_again() -> None:
    ensure_jars([ONE], Repository())
    with pytest.raises(EnvironmentProblem, match="not the expected file"):
        ensure_jars([jar("one", b"the next release")], Repository())


def test_a_given_folder_is_used_and_nothing_is_fetched(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    for wanted in WANTED:
        (given / wanted.file_name).write_bytes(wanted.artifact.encode())
    monkeypatch.setenv("RELAYOUT_JARS", str(given))
    repository = Repository()
    assert ensure_jars(WANTED, repository) == [str(given / "one-1.0.jar"), str(given / "other-1.0.jar")]
    assert repository.asked == []
    assert not cache.exists()


def test_a_given_folder_that_lacks_a_jar_is_an_error_that_names_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one-1.0.jar").write_bytes(b"one")
    monkeypatch.setenv("RELAYOUT_JARS", str(tmp_path))
    repository = Repository()
    with pytest.raises(EnvironmentProblem) as caught:
        ensure_jars(WANTED, repository)
    assert caught.value.what == "jars are missing: other-1.0.jar"
    assert caught.value.where == f"RELAYOUT_JARS={tmp_path}"
    assert caught.value.next == "put these files there, or unset RELAYOUT_JARS to have them fetched"
    assert repository.asked == []
    assert not cache.exists()


def test_a_given_folder_with_an_altered_jar_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one-1.0.jar").write_bytes(b"altered")
    monkeypatch.setenv("RELAYOUT_JARS", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="not the expected file"):
        ensure_jars([ONE], Repository())


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ({}, (ICEBERG, SQLITE)),
        ({"catalog": {"type": "jdbc", "uri": "jdbc:postgresql://127.0.0.1/lake"}}, (ICEBERG, POSTGRESQL)),
        ({"catalog": {"type": "rest", "uri": "http://127.0.0.1:8181"}}, (ICEBERG,)),
        ({"catalog": {"type": "hadoop"}}, (ICEBERG,)),
        ({"catalog": {"type": "glue"}}, (ICEBERG, AWS)),
        ({"warehouse": "s3://lake", "catalog": {"type": "rest", "uri": "http://127.0.0.1:8181"}}, (ICEBERG, AWS)),
    ],
)
def test_a_configuration_gets_the_jars_of_its_catalog_and_its_store(
    declared: dict[str, object], wanted: tuple[Jar, ...]
) -> None:
    assert jars_for(from_mapping({"tables": {}, **declared})) == wanted


def test_the_cache_is_where_people_say_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELAYOUT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "relayout"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "relayout"
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
