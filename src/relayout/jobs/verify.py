"""`relayout verify`: any table against its files, read without Spark, and against its alternates."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from relayout.config import Config
from relayout.errors import MissingError
from relayout.jobs.alternates.shelf import alternates_in
from relayout.jobs.alternates.verify import AlternateCheck, check_alternates
from relayout.kernels.columns import group_columns
from relayout.kernels.delete_read import read_vector
from relayout.kernels.engine import Engine, engine
from relayout.kernels.inspect import ToldColumn, ToldFile, differences
from relayout.kernels.parquet_shapes import WantedColumn, shapes_of
from relayout.kernels.places import place_for
from relayout.kernels.write import TargetField
from relayout.read.catalog import CatalogReader
from relayout.read.live_files import content_json, decoded_bound, delete_json
from relayout.read.manifests import DATA, EQUALITY_DELETES, Entry, entries_in
from relayout.read.tables import facts_of
from relayout.table.duckdb_text import path_literal
from relayout.table.facts import TableFacts
from relayout.table.names import TableName, parse
from relayout.table.scalars import sql_literal
from relayout.upkeep.verification import Check, Fault, Verification

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

_CHECKS = {
    "rows": Check.DATA_FILE,
    "partition": Check.PARTITION,
    "bounds": Check.BOUNDS,
    "nulls": Check.NULL_COUNTS,
}


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A table against its files, and its alternates against the table."""

    files: Verification
    alternates: tuple[AlternateCheck, ...]

    @property
    def table(self) -> str:
        return self.files.table

    @property
    def snapshot_id(self) -> int | None:
        return self.files.snapshot_id

    @property
    def clean(self) -> bool:
        return self.files.sound and not any(one.differences for one in self.alternates)

    def to_json(self) -> dict[str, Any]:
        alternates = [one.to_json() for one in self.alternates]
        return {**self.files.to_json(), "clean": self.clean, "alternates": alternates}


def verify_table(config: Config, session: Callable[[], SparkSession], table: str) -> TableCheck:
    """Look at every file of the current snapshot; a session is started only where there are alternates to compare."""
    name = parse(table, config.namespace, config.catalog.name)
    reader = CatalogReader(config)
    native = reader.load(name)
    if native is None:
        raise MissingError(
            f"there is no table {name}", where=config.catalog.name, next="`relayout status` lists the tables"
        )
    with engine("", config.spark.task_memory_bytes, keeps_order=False) as opened:
        files = _Verifying(native, name, opened, dict(config.catalog.properties)).run()
    facts = facts_of(native, name)
    own = any(one.is_of(facts) for one in alternates_in(reader, config))
    return TableCheck(files, check_alternates(session(), config, table).alternates if own else ())


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a data file belongs, and how many rows it has."""

    spec_id: int
    partition: str
    rows: int


@dataclass(slots=True)
class _Seen:
    """What was met so far; `named` are data files by the deletion vectors that name them."""

    manifests: int = 0
    data: dict[str, _Place] = field(default_factory=dict)
    deletes: list[Entry] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)


class _Verifying:
    """One look at one table."""

    def __init__(self, native: Table, name: TableName, opened: Engine, store: Mapping[str, str]) -> None:
        self._native = native
        self._name = name
        self._opened = opened
        self._store = store
        self._facts: TableFacts = facts_of(native, name)
        self._columns = group_columns(native)
        self._kinds = {column.name: column.type for column in self._facts.schema}
        self._seen = _Seen()

    def run(self) -> Verification:
        snapshot = self._native.current_snapshot()
        faults = [
            fault
            for manifest in (snapshot.manifests(self._native.io) if snapshot else ())
            for fault in self._manifest(manifest)
        ]
        faults += [fault for entry in self._seen.deletes for fault in self._delete(entry)]
        seen = self._seen
        rows = sum(place.rows for place in seen.data.values())
        counts = (seen.manifests, len(seen.data), len(seen.deletes), rows)
        return Verification(str(self._name), self._facts.current_snapshot_id, *counts, tuple(faults))

    def _manifest(self, manifest: ManifestFile) -> Iterator[Fault]:
        self._seen.manifests += 1
        if manifest.partition_spec_id not in self._native.specs():
            what = f"is of partition spec {manifest.partition_spec_id}, which the table does not have"
            yield Fault(Check.MANIFEST_SPEC, manifest.manifest_path, what)
            return
        told = _spec_in_header(self._native, manifest)
        if told not in (None, manifest.partition_spec_id):
            what = f"says it is of spec {told}, its manifest list says {manifest.partition_spec_id}"
            yield Fault(Check.MANIFEST_SPEC, manifest.manifest_path, what)
        for entry in entries_in(manifest, self._native.io):
            if not entry.live:
                continue
            if int(entry.file.content) != DATA:
                self._seen.deletes.append(entry)
                continue
            yield from self._data_file(entry)

    def _data_file(self, entry: Entry) -> Iterator[Fault]:
        content = content_json(self._native, entry.file)
        path = entry.file.file_path
        if path in self._seen.data:
            yield Fault(Check.DATA_FILE, path, "is in the table twice")
        self._seen.data[path] = _Place(entry.file.spec_id, repr(content["partition"]), entry.file.record_count)
        if content["file-format"] != "parquet":
            return
        try:
            local = self._local(path)
            shape = shapes_of(self._opened.connection, [local])[local]
            told = self._told(entry, tuple(content["partition"]))
            found = differences(self._opened.connection, local, told, shape, self._columns)
        except Exception as error:  # noqa: BLE001
            # Whatever keeps a file from being read is what this verb is there to find.
            yield Fault(Check.DATA_FILE, path, f"cannot be read: {str(error).splitlines()[0]}")
            return
        for difference in found:
            yield Fault(_CHECKS[difference.what], path, difference.text)

    def _told(self, entry: Entry, partition: tuple[object, ...]) -> ToldFile:
        spec = next(spec for spec in self._facts.specs if spec.spec_id == entry.file.spec_id)
        fields = tuple(
            TargetField(item.name, item.column, item.transform, self._kinds.get(item.column, "null"))
            for item in spec.fields
        )
        columns = tuple(self._told_column(entry, column) for column in self._columns.wanted if column.kind == "leaf")
        return ToldFile(entry.file.file_path, entry.file.record_count, fields, partition, columns)  # type: ignore[arg-type]

    def _told_column(self, entry: Entry, column: WantedColumn) -> ToldColumn:
        file, kind = entry.file, self._kinds[column.name]
        lower, upper = (
            _literal((bounds or {}).get(column.field_id), kind) for bounds in (file.lower_bounds, file.upper_bounds)
        )
        return ToldColumn(column, lower, upper, (file.null_value_counts or {}).get(column.field_id))

    def _delete(self, entry: Entry) -> Iterator[Fault]:
        content = delete_json(self._native, entry)
        path, scope = entry.file.file_path, (entry.file.spec_id, repr(content["partition"]))
        try:
            if int(entry.file.content) == EQUALITY_DELETES:
                yield from self._keys(path, content.get("equality-ids", ()))
            elif content["file-format"] == "puffin":
                yield from self._vector(entry, content, scope)
            elif content["file-format"] == "parquet":
                yield from self._positions(path, scope)
        except Exception as error:  # noqa: BLE001
            # As for data files.
            yield Fault(Check.DELETE_FILE, path, f"cannot be read: {str(error).splitlines()[0]}")

    def _keys(self, path: str, field_ids: object) -> Iterator[Fault]:
        shape = shapes_of(self._opened.connection, [local := self._local(path)])[local]
        held = {column.field_id for column in shape.columns}
        for field_id in field_ids if isinstance(field_ids, list) else []:
            if field_id not in held:
                yield Fault(Check.DELETE_FILE, path, f"deletes by field {field_id} and does not hold it")
            if field_id not in self._columns.deleted_by:
                yield Fault(Check.DELETE_SCOPE, path, f"deletes by field {field_id}, which no schema has")
        if not field_ids:
            yield Fault(Check.DELETE_SCOPE, path, "deletes by key and names no field")

    def _vector(self, entry: Entry, content: Mapping[str, object], scope: tuple[int, str]) -> Iterator[Fault]:
        path, data_file = entry.file.file_path, entry.only_data_file
        if data_file in self._seen.named:
            yield Fault(
                Check.DELETE_SCOPE, path, f"{data_file} has another deletion vector in {self._seen.named[data_file]}"
            )
        self._seen.named[data_file] = path
        gone = read_vector(self._local(path), content)
        if len(gone) != entry.file.record_count:
            what = f"deletes {len(gone)} rows of {data_file}, its manifest says {entry.file.record_count}"
            yield Fault(Check.DELETE_FILE, path, what)
        yield from self._in_scope(path, data_file, scope, int(gone[-1]) if len(gone) else -1)

    def _positions(self, path: str, scope: tuple[int, str]) -> Iterator[Fault]:
        source = f"read_parquet({path_literal(self._local(path))}, hive_partitioning = false)"
        connection = self._opened.connection
        rows = connection.execute(f"SELECT file_path, max(pos) FROM {source} GROUP BY file_path").fetchall()
        for data_file, last in rows:
            yield from self._in_scope(path, data_file, scope, last)

    def _in_scope(self, path: str, data_file: str, scope: tuple[int, str], last: int) -> Iterator[Fault]:
        """Readers look for the deletes of a file under its own spec and partition; elsewhere they may not find them."""
        place = self._seen.data.get(data_file)
        if place is None:
            return
        if (place.spec_id, place.partition) != scope:
            here, there = f"spec {scope[0]} {scope[1]}", f"spec {place.spec_id} {place.partition}"
            yield Fault(Check.DELETE_SCOPE, path, f"deletes rows of {data_file} under {here}, the file is of {there}")
        if last >= place.rows:
            yield Fault(Check.DELETE_FILE, path, f"deletes row {last} of {data_file}, which has {place.rows}")

    def _local(self, path: str) -> str:
        return place_for(path, self._store).local_copy(path, str(self._opened.folder / "fetched"))


def _spec_in_header(native: Table, manifest: ManifestFile) -> int | None:
    """The spec that the manifest's own header names."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import ManifestFile

    with AvroFile[ManifestFile](native.io.new_input(manifest.manifest_path)) as header:
        told = header.header.meta.get("partition-spec-id")
    return None if told is None else int(told)


def _literal(raw: bytes | None, kind: str) -> str:
    """A bound as DuckDB text; empty where there is none, or none that can be told."""
    if raw is None:
        return ""
    written = "float" if kind == "double" and len(raw) == struct.calcsize("<f") else kind
    try:
        return sql_literal(decoded_bound(raw, written), kind, "duckdb")
    except (ValueError, UnicodeDecodeError):
        # The bound of a text may be cut within a character; of a decimal, older engines write other lengths.
        return ""
