"""Facts about a declared table's sources: files, formats, batches, what is in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from relayout.config import Config
from relayout.config.model import Table
from relayout.errors import SourceError
from relayout.read.heads import columns_in_heads
from relayout.read.listing import Listing, list_source
from relayout.read.local_files import format_of
from relayout.read.objects import ObjectStore
from relayout.read.scan_cache import ScanCache
from relayout.read.scanning import scan
from relayout.table.facts import TableFacts
from relayout.table.scalars import from_text
from relayout.table.sources import BadFile, FileContent, SourceFile
from relayout.table.types import parse_type


@dataclass(frozen=True, slots=True)
class Sources:
    """The listing of one table's sources; `formats` holds each file's format by its path."""

    files: tuple[SourceFile, ...]
    bad: tuple[BadFile, ...]
    formats: Mapping[str, str]

    @property
    def path_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for file in self.files for name, _ in file.path_values))

    @property
    def incomplete(self) -> bool:
        """Whether some of it could not be looked into, so that a missing file proves nothing."""
        return bool(self.bad)


def declared_types(table: Table) -> dict[str, str]:
    """Types that the configuration gives to columns, canonical."""
    types = {key.name: parse_type(key.type) for key in table.partitions if key.type and key.transform == "identity"}
    return types | {name: parse_type(kind) for name, kind in table.schema.items()}


def list_sources(config: Config, table: Table, facts: TableFacts | None) -> Sources:
    """List the table's sources; nothing at all is an error, because an unmounted disk is not a deletion."""
    listing = listing_of(config, table, facts)
    if not listing.files and not listing.bad:
        raise SourceError(
            f"the source of {table.name} lists no file at all",
            where=", ".join(table.source),
            next="is the disk mounted, is the pattern right? nothing was changed",
        )
    return _with_formats(listing, table)


def listing_of(config: Config, table: Table, facts: TableFacts | None) -> Listing:
    """What the table's patterns mean, also where that is nothing."""
    known = {column.name: column.type for column in facts.schema} if facts else {}
    known |= declared_types(table)
    return list_source(table.source, config.base_dir, _accepts(known), object_store(config, table))


def object_store(config: Config, table: Table) -> ObjectStore | None:
    if any(pattern.startswith("s3://") for pattern in table.source):
        return ObjectStore.from_properties(config.catalog.properties)
    return None


def _accepts(known: Mapping[str, str]) -> Callable[[str, str], bool]:
    def accepts(column: str, text: str) -> bool:
        if column not in known:
            return True
        try:
            from_text(text, known[column])
        except ValueError:
            return False
        return True

    return accepts


def _with_formats(listing: Listing, table: Table) -> Sources:
    formats: dict[str, str] = {}
    good: list[SourceFile] = []
    bad = list(listing.bad)
    for file in listing.files:
        detected = format_of(file.path)
        if table.format is None and detected is None:
            bad.append(BadFile(file.path, "its name does not tell the format; set `format` of the table"))
            continue
        formats[file.path] = table.format or (detected[0] if detected else "")
        good.append(file)
    shapes = {tuple(name for name, _ in file.path_values) for file in good}
    columns = {name for shape in shapes for name in shape}
    for file in good if len(shapes) > 1 else ():
        missing = columns - {name for name, _ in file.path_values}
        if missing:
            bad.append(BadFile(file.path, f"its path does not tell {', '.join(sorted(missing))}, as other paths do"))
    lacking = {file.path for file in bad}
    return Sources(tuple(file for file in good if file.path not in lacking), tuple(bad), formats)


def contents_of(
    config: Config,
    table: Table,
    sources: Sources,
    files: Sequence[SourceFile],
    value_columns: Sequence[str],
) -> dict[str, FileContent]:
    """What the files hold; read in full once, remembered by path, size and time.

    Where the declared schema names every column that the beginnings of the files show, it is the whole schema and the
    files are not read at all.
    """
    if not files:
        return {}
    declared = declared_types(table)
    if not value_columns and declared:
        heads = columns_in_heads(files, sources.formats)
        if heads is not None and heads <= declared.keys() | set(sources.path_columns):
            return {}
    cache = ScanCache()
    found = cache.known(files, value_columns)
    unknown = [file for file in files if file.path not in found]
    store = object_store(config, table)
    by_format: dict[str, list[SourceFile]] = {}
    for file in unknown:
        by_format.setdefault(sources.formats[file.path], []).append(file)
    for kind, members in by_format.items():
        fresh = scan(
            members,
            kind,
            value_columns,
            declared,
            memory_limit_bytes=config.spark.task_memory_bytes,
            threads=os.cpu_count() or 1,
            fetch=store.fetch if store else None,
        )
        cache.remember(members, value_columns, fresh)
        found |= {content.path: content for content in fresh}
    return {path: replace(content, path=path) for path, content in found.items()}
