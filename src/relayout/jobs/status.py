"""`relayout status`: how the tables are, told by metadata and ledger alone; no JVM is started, nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from relayout.alternates.registry import Found
from relayout.config import Config
from relayout.config.model import ALTERNATE_PREFIX, OWN_TABLES, Table
from relayout.errors import MissingError, RelayoutError
from relayout.jobs.alternates.shelf import alternates_in
from relayout.jobs.alternates.status import alternates_status
from relayout.jobs.record import now_ms
from relayout.ledger.records import BASE_LAYOUT, BatchRecord
from relayout.ledger.state import judge
from relayout.read.catalog import CatalogReader, embedded_catalog_is_missing
from relayout.read.census import FileCensus, census, files_in_manifests
from relayout.read.ledger import LedgerReader
from relayout.read.routing_counts import counts_by_alternate
from relayout.read.tables import facts_of
from relayout.read.whole_ledger import records_by_table
from relayout.table.facts import Spec, TableFacts
from relayout.table.layouts import Layout, describe, layout_of, same_layout
from relayout.table.names import TableName, parse
from relayout.table.routing_counts import RoutingCounts
from relayout.upkeep.health import Debts, Health, health_of
from relayout.upkeep.lake_status import (
    BatchState,
    Files,
    LakeStatus,
    LedgerStatus,
    SnapshotStatus,
    SpecStatus,
    TableStatus,
)
from relayout.upkeep.ledger_status import ledger_status

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable

MOST_FILES_UNASKED = 20_000
"""Files of larger tables are only counted for those who name the table: reading so many entries takes a second."""

SMALL_SHARE = 0.75
"""Smaller than this share of the target is small, as in Iceberg's own compaction, unless a policy says otherwise."""

_TOTALS = ("total-data-files", "total-files-size", "total-records", "total-delete-files", "total-position-deletes")


def read_status(config: Config, tables: Sequence[str] = ()) -> LakeStatus:
    """The named tables with their batches; without names all declared ones and what else lies in the namespace.

    A table that cannot be read is part of the answer as a problem; MissingError for a name that means nothing.
    """
    reader = CatalogReader(config)
    look = _Look(config, reader, detailed=bool(tables))
    return LakeStatus(
        at_ms=now_ms(),
        warehouse=config.warehouse,
        catalog=config.catalog.name,
        namespace=config.namespace,
        catalog_exists=not embedded_catalog_is_missing(config),
        tables=tuple(look.named(text) for text in tables) if tables else tuple(look.everything()),
        detailed=bool(tables),
    )


class _Look:
    """One look at a lake, in detail at tables that were named or at all of them."""

    def __init__(self, config: Config, reader: CatalogReader, *, detailed: bool) -> None:
        self._config = config
        self._reader = reader
        self._detailed = detailed
        self._home = tuple(config.namespace.split("."))

    def everything(self) -> list[TableStatus]:
        others = [
            name
            for name in self._reader.table_names(self._config.namespace)
            if name not in self._config.tables and name not in OWN_TABLES and not name.startswith(ALTERNATE_PREFIX)
        ]
        return [self._table(TableName(self._home, name)) for name in (*self._config.tables, *others)]

    def named(self, text: str) -> TableStatus:
        name = parse(text, self._config.namespace, self._config.catalog.name)
        found = self._table(name)
        if found.declared or found.exists:
            return found
        there = self._reader.table_names(".".join(name.namespace))
        known = sorted({*there, *(self._config.tables if name.namespace == self._home else ())})
        raise MissingError(
            f"there is no table {name}",
            where=f"catalog {self._config.catalog.name!r} of {self._config.file}",
            next=f"tables of {'.'.join(name.namespace)}: {', '.join(known) or 'none'}",
        )

    def _table(self, name: TableName) -> TableStatus:
        declared = self._config.tables.get(name.table) if name.namespace == self._home else None
        outline = TableStatus(
            name=name.table if name.namespace == self._home else str(name),
            declared=declared is not None,
            declared_layout=describe(layout_of(declared)) if declared else "",
        )
        exists = True
        try:
            native = self._reader.load(name)
            exists = native is not None
            return self._described(outline, name, declared, native)
        except Exception as error:  # noqa: BLE001
            # Damaged metadata fails in as many ways as there are parsers, and must not hide the other tables.
            return replace(outline, exists=exists, problem=_problem(error))

    def _described(
        self, outline: TableStatus, name: TableName, declared: Table | None, native: NativeTable | None
    ) -> TableStatus:
        facts = facts_of(native, name) if native else None
        ledger = self._ledger(name, facts)
        loads = declared is not None and bool(declared.source)
        if native is None or facts is None:
            return replace(outline, ledger=ledger, next="relayout apply" if loads else "")
        files = self._files(native, facts, declared)
        drifted = declared is not None and not same_layout(facts.layout, layout_of(declared))
        debts = Debts(
            census=files.census,
            drifted=drifted and loads,
            other_spec_bytes=_other_spec_bytes(files.census, facts),
            batches=len(ledger.batches),
            failed=len(ledger.of(BatchState.FAILED)) if loads else 0,
            invalidated=len(ledger.of(BatchState.INVALIDATED)) if loads else 0,
        )
        health = health_of(outline.name, debts)
        return replace(
            outline,
            managed=facts.is_managed,
            exists=True,
            next=_next(health, debts, unrecorded=ledger.unrecorded if loads else 0),
            location=facts.location,
            format_version=facts.format_version,
            snapshot=_snapshot(facts),
            files=files,
            layout=describe(facts.layout),
            drifted=drifted,
            specs=tuple(
                SpecStatus(spec.spec_id, _spec_text(spec), spec.spec_id == facts.default_spec_id)
                for spec in facts.specs
            ),
            health=health,
            ledger=ledger,
            alternates=alternates_status(declared, facts, native, self._alternates, self._uses),
        )

    @cached_property
    def _alternates(self) -> tuple[Found, ...]:
        return alternates_in(self._reader, self._config)

    @cached_property
    def _uses(self) -> Mapping[str, RoutingCounts]:
        return counts_by_alternate(self._config, self._reader) if self._alternates else {}

    def _ledger(self, name: TableName, facts: TableFacts | None) -> LedgerStatus:
        if self._detailed:
            home = replace(self._config, namespace=".".join(name.namespace))
            records = LedgerReader(home, self._reader).records(name.table)
        else:
            records = self._whole_ledger.get(name.table, ())
        ancestry = facts.ancestry if facts else ()
        return ledger_status(judge(ancestry, records, BASE_LAYOUT), records, ancestry)

    @cached_property
    def _whole_ledger(self) -> Mapping[str, tuple[BatchRecord, ...]]:
        return records_by_table(self._config, self._reader)

    def _files(self, native: NativeTable, facts: TableFacts, declared: Table | None) -> Files:
        """Counted file by file, or as the current snapshot sums them up where that would take long."""
        target_bytes = int(
            facts.properties.get("write.target-file-size-bytes", self._config.defaults.target_file_mb << 20)
        )
        policy_mb = declared.policy.compact_below_mb if declared else None
        small_below_bytes = int(target_bytes * SMALL_SHARE) if policy_mb is None else policy_mb << 20
        totals = facts.ancestry[0].summary if facts.ancestry else {}
        summed = all(name in totals for name in _TOTALS)
        if self._detailed or not summed or files_in_manifests(native) <= MOST_FILES_UNASKED:
            counted = census(native, small_below_bytes, target_bytes)
            return Files(
                data_files=counted.data_files,
                size_bytes=counted.size_bytes,
                rows=max(0, counted.rows - counted.deleted_rows),
                rows_are_exact=not counted.delete_files,
                delete_files=counted.delete_files,
                small_below_bytes=small_below_bytes,
                census=counted,
            )
        data_files, size_bytes, rows, delete_files, deleted_rows = (int(totals[name]) for name in _TOTALS)
        return Files(
            data_files=data_files,
            size_bytes=size_bytes,
            rows=max(0, rows - deleted_rows),
            rows_are_exact=not delete_files,
            delete_files=delete_files,
            small_below_bytes=small_below_bytes,
            census=None,
        )


def _problem(error: Exception) -> str:
    if isinstance(error, RelayoutError):
        return str(error)
    lines = str(error).splitlines() or [""]
    return f"the table cannot be read: {type(error).__name__}" + (f": {lines[0]}" if lines[0] else "")


def _next(health: Health, debts: Debts, unrecorded: int) -> str:
    """What failed goes first, then what a crash left open, then what costs most."""
    if debts.failed:
        return "relayout retry"
    if unrecorded:
        return "relayout apply"
    worst = max(health.losses, key=lambda loss: loss.points, default=None)
    return worst.fix if worst else ""


def _snapshot(facts: TableFacts) -> SnapshotStatus | None:
    if not facts.ancestry:
        return None
    current = facts.ancestry[0]
    return SnapshotStatus(current.snapshot_id, current.timestamp_ms, current.operation)


def _live_layout(spec: Spec) -> Layout:
    """How a spec lays rows out; a column that was dropped since shows as the partition field's own name."""
    return Layout(
        tuple(
            field if field.column else replace(field, column=f"{field.name} (column dropped)")
            for field in spec.fields
            if field.transform != "void"
        )
    )


def _spec_text(spec: Spec) -> str:
    return describe(_live_layout(spec))


def _other_spec_bytes(counted: FileCensus | None, facts: TableFacts) -> int:
    """Bytes in files that lie otherwise than the current spec would have them."""
    if counted is None:
        return 0
    current = _live_layout(facts.spec)
    same = {spec.spec_id for spec in facts.specs if same_layout(_live_layout(spec), current)}
    return sum(spec.size_bytes for spec in counted.specs if spec.spec_id not in same)
