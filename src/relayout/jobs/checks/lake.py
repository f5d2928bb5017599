"""What one configuration names: itself, its catalog, its warehouse, its sources."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from relayout.config import Config, Table
from relayout.errors import ConfigError, ConfigProblem, EnvironmentProblem, MissingError, RelayoutError
from relayout.jobs.checks.machine import nearest_folder
from relayout.jobs.checks.patience import within
from relayout.jobs.checks.store import PROBE, SpoiledStore, probe_address, require_whole, stored_content
from relayout.jobs.sources import listing_of
from relayout.kernels.places import place_for
from relayout.read.catalog import CatalogReader, embedded_catalog_file
from relayout.table.names import parse
from relayout.table.quantities import count_text, size_text
from relayout.upkeep.findings import Finding, State

CATALOG_SECONDS = 15
STORAGE_SECONDS = 15
LISTING_SECONDS = 60
MOST_NAMED = 3

SHORTEST_SECRET = 4
"""Shorter ones would tear holes into every text and protect nothing."""
_SECRET_KEY = re.compile(r"password|secret|token|credential", re.IGNORECASE)


def configuration(config: Config | None, problem: ConfigError | MissingError | None) -> list[Finding]:
    """The file and what it declares, each problem of it, or that there is none."""
    check = "configuration"
    if isinstance(problem, ConfigError):
        return [Finding(check, State.PROBLEM, _located(told), told.next) for told in problem.problems]
    if problem is not None:
        return [Finding.from_error(check, problem)]
    if config is None:
        fix = "run `relayout init` to write one with small samples, or name yours with -c FILE"
        return [Finding(check, State.WARNING, "no relayout.yaml here; the defaults are looked at instead", fix)]
    declared = count_text(len(config.tables), "table")
    if config.streams:
        declared += f" and {count_text(len(config.streams), 'stream')}"
    return [Finding(check, State.OK, f"{config.file} declares {declared} in namespace {config.namespace}")]


def _located(problem: ConfigProblem) -> str:
    place = f"{problem.file}:{problem.line}" if problem.line else problem.file
    return f"{place}: {problem.key}: {problem.what}"


@dataclass(frozen=True, slots=True)
class CatalogAnswer:
    """What a catalog said; one that is not made yet holds no tables, and the first apply makes it.

    `other_names` are names under which its database holds tables while it has none under ours; `never_expired` are
    declared tables whose snapshots and files must not be cleaned up.
    """

    made: bool
    tables: int = 0
    other_names: tuple[str, ...] = ()
    never_expired: tuple[str, ...] = ()


def ask_catalog(config: Config) -> CatalogAnswer | Finding:
    """Open the catalog and list its tables; nothing is made where nothing is."""
    try:
        return within(CATALOG_SECONDS, f"the {config.catalog.type} catalog", lambda: _listed(config))
    except RelayoutError as error:
        fix = "check catalog.uri and its login, and that the server runs and can be reached from here"
        finding = Finding.from_error("catalog", error, fix)
        file = embedded_catalog_file(config)
        if file is None:
            return replace(finding, what=f"{error.what} ({catalog_address(config)})")
        if not (os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK)):
            return replace(finding, next="allow reading and writing this file and its folder")
        return finding


def _listed(config: Config) -> CatalogAnswer:
    reader = CatalogReader(config)
    if not reader.is_made():
        return CatalogAnswer(False)
    tables = reader.table_names(config.namespace)
    kept = []
    for name in sorted(set(tables) & set(config.tables)):
        table = reader.load(parse(name, config.namespace, config.catalog.name))
        if table is not None and table.properties.get("gc.enabled", "true").lower() == "false":
            kept.append(name)
    return CatalogAnswer(True, len(tables), reader.names_beside() if not tables else (), tuple(kept))


def catalog_findings(config: Config, answer: CatalogAnswer) -> Iterator[Finding]:
    """The catalog's answer in words, and what it means for later."""
    yield _catalog_finding(config, answer)
    if config.catalog.type == "hadoop":
        what = "a Hadoop catalog cannot tell two writers apart: of two commits at the same moment one is lost"
        yield Finding("catalog", State.WARNING, what, "let one process write at a time, or use another catalog")
    if answer.never_expired:
        what = f"gc.enabled is false for {', '.join(answer.never_expired)}: expiring and removing orphans are refused"
        fix = "let the catalog's own collector clean up, as Nessie asks; or set the table property gc.enabled to true"
        yield Finding("upkeep", State.WARNING, what, fix)


def _catalog_finding(config: Config, answer: CatalogAnswer) -> Finding:
    place = f"{config.catalog.type} catalog {config.catalog.name} ({catalog_address(config)})"
    if not answer.made:
        return Finding("catalog", State.OK, f"{place} is not made yet; the first `relayout apply` makes it")
    file = embedded_catalog_file(config)
    if file is not None and not os.access(file, os.W_OK):
        return Finding("catalog", State.PROBLEM, f"{place} cannot be written", "allow writing to this file")
    held = f"holds {count_text(answer.tables, 'table')} in {config.namespace}"
    if answer.other_names:
        what = f"{place} {held}, but its database holds tables of {', '.join(answer.other_names)}"
        return Finding("catalog", State.WARNING, what, "every engine must use one name: is `catalog.name` right?")
    return Finding("catalog", State.OK, f"{place} {held}")


def catalog_address(config: Config) -> str:
    """Where the catalog is, without a login or anything else that an address can hide."""
    if file := embedded_catalog_file(config):
        return str(file)
    if not config.catalog.uri:
        return config.warehouse
    parts = urlsplit(config.catalog.uri.removeprefix("jdbc:"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def without_secrets(text: str, config: Config) -> str:
    """The text without what opens the catalog or the store: drivers quote whole addresses in their errors."""
    told = urlsplit(config.catalog.uri.removeprefix("jdbc:"))
    settings = [*config.catalog.properties.items(), *parse_qsl(told.query), ("password", told.password or "")]
    text = text.replace(config.catalog.uri, catalog_address(config)) if told.query or told.password else text
    for key, value in settings:
        if len(value) >= SHORTEST_SECRET and _SECRET_KEY.search(key):
            text = text.replace(value, "***")
    return text


def storage_round_trip(config: Config) -> Finding:
    """Write a small object, read it as tables are read, compare, delete it; the warehouse itself is never made."""
    remote = config.warehouse.startswith("s3://")
    folder = config.warehouse if remote else str(nearest_folder(Path(config.warehouse)))
    address = probe_address(folder)
    try:
        within(STORAGE_SECONDS, "the warehouse", lambda: _written_and_read(config, address))
    except RelayoutError as error:
        fix = "check that the bucket exists, and s3.endpoint, client.region and the keys in catalog.properties"
        known = error.next if not remote or isinstance(error, SpoiledStore) else fix
        return Finding("storage", State.PROBLEM, f"{error.what} ({config.warehouse})", known)
    except OSError as error:
        what = f"{folder} cannot be used: {error.strerror or error}"
        return Finding("storage", State.PROBLEM, what, "see that it can be written and has room, or change `warehouse`")
    what = f"{size_text(len(PROBE))} written, read back and deleted in {folder}"
    if folder != config.warehouse:
        what += f"; {config.warehouse} is not made yet"
    return Finding("storage", State.OK, what)


def _written_and_read(config: Config, address: str) -> None:
    place = place_for(address, config.catalog.properties)
    try:
        place.write(PROBE, address)
        require_whole(stored_content(config, address))
    except BaseException:
        # What failed first is what people must know; half a probe may be there all the same.
        with suppress(RelayoutError, OSError):
            place.remove(address)
        raise
    if not place.remove(address):
        raise EnvironmentProblem("what was just written could not be found again to delete it")


def source_findings(config: Config) -> Iterator[Finding]:
    """Whether each declared source means any file; the files themselves are not read."""
    for table in config.tables.values():
        if table.source:
            try:
                yield from within(
                    LISTING_SECONDS, f"the source of {table.name}", partial(_listed_source, config, table)
                )
            except RelayoutError as error:
                yield Finding.from_error(
                    "sources", error, f"check `source` of {table.name}, and that it can be reached"
                )


def _listed_source(config: Config, table: Table) -> list[Finding]:
    listing = listing_of(config, table, None)
    fix = "is the disk mounted, is the pattern right?" + (f" see {config.file}:{table.line}" if table.line else "")
    findings = [
        Finding("sources", State.PROBLEM, f"{table.name}: {pattern} means no file at all", fix)
        for pattern in listing.unmatched
    ]
    if listing.bad:
        named = "; ".join(f"{file.path}: {file.reason}" for file in listing.bad[:MOST_NAMED])
        what = f"{table.name}: {count_text(len(listing.bad), 'path')} cannot be used: {named}"
        findings.append(Finding("sources", State.WARNING, what, "`relayout plan` lists them all"))
    if listing.files:
        what = f"{table.name} has {count_text(len(listing.files), 'file')} of {size_text(listing.size_bytes)}"
        findings.append(Finding("sources", State.OK, what))
    return findings
