"""The jars that Spark needs beside its own: pinned by coordinate and SHA-256, fetched once, checked before use."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from relayout.config import Config
from relayout.errors import EnvironmentProblem


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact of the public Maven repository."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


ICEBERG = Jar(
    "org.apache.iceberg",
    "iceberg-spark-runtime-4.1_2.13",
    "1.12.0",
    "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
)
SQLITE = Jar(
    "org.xerial", "sqlite-jdbc", "3.50.3.0", "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08"
)
POSTGRESQL = Jar(
    "org.postgresql", "postgresql", "42.7.8", "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7"
)
AWS = Jar(
    "org.apache.iceberg",
    "iceberg-aws-bundle",
    "1.12.0",
    "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
)

Fetch = Callable[[Iterable[str], Path], None]
"""Resolves coordinates into a folder; Spark's own resolver stands behind it."""


def jars_for(config: Config) -> tuple[Jar, ...]:
    """What the configured catalog and warehouse need; Iceberg's own runtime comes first."""
    wanted = [ICEBERG]
    if config.catalog.type == "jdbc":
        wanted.append(POSTGRESQL if config.catalog.uri.startswith("jdbc:postgresql:") else SQLITE)
    if config.warehouse.startswith("s3://") or config.catalog.type == "glue":
        wanted.append(AWS)
    return tuple(wanted)


def cache_folder() -> Path:
    """Where fetched and derived files are kept; everything in it may be deleted at any time."""
    if chosen := os.environ.get("RELAYOUT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relayout"


def ensure_jars(wanted: Iterable[Jar], fetch: Fetch) -> list[str]:
    """Paths of checked jars; what is missing is fetched, unless RELAYOUT_JARS names a folder that holds them."""
    given = os.environ.get("RELAYOUT_JARS")
    folder = Path(given) if given else cache_folder() / "jars"
    missing = [jar for jar in wanted if not (folder / jar.file_name).exists()]
    if missing and given:
        raise EnvironmentProblem(
            "jars are missing: " + ", ".join(jar.file_name for jar in missing),
            where=f"RELAYOUT_JARS={given}",
            next="put these files there, or unset RELAYOUT_JARS to have them fetched",
        )
    if missing:
        _fetch_into(folder, missing, fetch)
    return [str(_checked(folder / jar.file_name, jar)) for jar in wanted]


def _fetch_into(folder: Path, missing: list[Jar], fetch: Fetch) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / f"fetch-{os.getpid()}"
    try:
        fetch([jar.coordinate for jar in missing], scratch)
        for jar in missing:
            arrived = scratch / "jars" / f"{jar.group}_{jar.file_name}"
            if not arrived.exists():
                raise EnvironmentProblem(
                    f"{jar.coordinate} could not be fetched",
                    where="the public Maven repository, through Spark's resolver",
                    next="check the network and its proxy, or download the jar elsewhere and name its folder in "
                    "RELAYOUT_JARS",
                )
            _checked(arrived, jar).replace(folder / jar.file_name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _checked(path: Path, jar: Jar) -> Path:
    """The path, if its content is the pinned one; a jar is checked again whenever its size or time changed."""
    facts = path.stat()
    seal = path.with_name(f".{path.name}.checked")
    known = f"{jar.sha256} {facts.st_size} {facts.st_mtime_ns}"
    if seal.exists() and seal.read_text() == known:
        return path
    with path.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != jar.sha256:
        raise EnvironmentProblem(
            f"{path.name} is not the expected file: SHA-256 {found}, pinned {jar.sha256}",
            where=str(path.parent),
            next="delete the file and run again; if it comes back the same, do not use it",
        )
    if os.access(path.parent, os.W_OK):
        seal.write_text(known)
    return path
