"""`relayout plan`: look at sources, tables and ledger, and say what apply would do; nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from relayout.config import Config
from relayout.config.model import ALTERNATE_PREFIX, OWN_TABLES, Table
from relayout.errors import MissingError, RelayoutError
from relayout.ingest.advice import Forecast, Sample, batch_warnings, forecast, layout_advice
from relayout.ingest.batches import Assignment, gaps
from relayout.ingest.literals import literal_type, split_expressions
from relayout.ingest.plan import Action, Change, Cost, Drop, IngestPlan, PlannedBatch, TablePlan
from relayout.ingest.schema import SourceSchema, evolve, infer, mapping_hash, table_schema
from relayout.ingest.units import split
from relayout.jobs.alternates.planning import Base, alternate_drops, alternate_plans
from relayout.jobs.alternates.shelf import alternates_in
from relayout.jobs.pending import Pending, pending_batches
from relayout.jobs.sample import sample_of
from relayout.jobs.sources import Sources, contents_of, declared_types, list_sources
from relayout.jobs.validation import check_columns
from relayout.ledger.records import BASE_LAYOUT
from relayout.ledger.state import LedgerState, judge
from relayout.read.catalog import CatalogReader
from relayout.read.ledger import LedgerReader
from relayout.read.tables import facts_of
from relayout.table.alternate_plans import AlternatePlan
from relayout.table.batches import BatchKey
from relayout.table.facts import TableFacts
from relayout.table.layouts import Layout, describe, layout_of, same_layout
from relayout.table.names import TableName, parse
from relayout.table.schemas import Column, Evolution, TableSchema
from relayout.table.sources import FileContent, SourceFile

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable

Analyse = Callable[[TableSchema, Mapping[str, str]], dict[str, str]]
"""Asks Spark for the types of expressions over a schema; only called where nothing else tells them."""


@dataclass(frozen=True, slots=True)
class TableWork:
    """A table's plan with everything that applying it needs and that a document does not carry."""

    plan: TablePlan
    declared: Table
    name: TableName
    layout: Layout
    sources: Sources
    schema: SourceSchema
    batches: Mapping[BatchKey, tuple[SourceFile, ...]]
    shared: Mapping[str, int]
    batch_columns: tuple[tuple[str, str], ...]
    incremental: Mapping[BatchKey, tuple[BatchKey, ...]]
    state: LedgerState
    facts: TableFacts | None


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """The plan of all tables and the work behind it."""

    plan: IngestPlan
    works: Mapping[str, TableWork]


class Planner:
    """Plans one configuration; opens the catalog once."""

    def __init__(self, config: Config, analyse: Analyse) -> None:
        self._config = config
        self._analyse = analyse
        self._reader = CatalogReader(config)
        self._ledger = LedgerReader(config, self._reader)

    def plan(self, tables: Sequence[str] = ()) -> PlannedWork:
        """Plan the named tables, or all that have a source, and what is no longer declared."""
        chosen = chosen_tables(self._config, tables)
        if len(chosen) == 1 or tables:
            works = {declared.name: self.plan_table(declared) for declared in chosen if declared.source}
            plans = [works[one.name].plan if one.source else self._followed(one) for one in chosen]
            return PlannedWork(IngestPlan(tuple(plans), () if tables else self._drops()), works)
        return self._planned(chosen, self._drops())

    def plan_again(self, stored: IngestPlan) -> PlannedWork:
        """Plan what a stored plan is about as things are now."""
        chosen = [self._config.tables[table.table] for table in stored.tables]
        return self._planned(chosen, self._drops() if stored.drops else ())

    def _planned(self, chosen: Sequence[Table], drops: tuple[Drop, ...]) -> PlannedWork:
        """One table that cannot be planned does not hold up the others; it is part of the plan as a problem."""
        works: dict[str, TableWork] = {}
        plans: list[TablePlan] = []
        for declared in chosen:
            try:
                if not declared.source:
                    plans.append(self._followed(declared))
                    continue
                work = self.plan_table(declared)
                works[declared.name] = work
                plans.append(work.plan)
            except RelayoutError as error:
                plans.append(_troubled(declared, error))
        return PlannedWork(IngestPlan(tuple(plans), drops), works)

    def _followed(self, declared: Table) -> TablePlan:
        """The plan of a table that others fill: only its alternates are ours to bring up."""
        name = TableName(tuple(self._config.namespace.split(".")), declared.name)
        native = self._reader.load(name)
        if native is None:
            return replace(_untouched(declared), notes=("nobody has made this table yet; it has no source",))
        facts = facts_of(native, name)
        types = {column.name: column.type for column in facts.schema}
        size = int(facts.ancestry[0].summary.get("total-files-size", "0")) if facts.ancestry else 0
        return replace(
            _untouched(declared),
            layout=describe(facts.layout),
            base_snapshot_id=facts.current_snapshot_id,
            alternates=alternate_plans(
                Base(declared, facts, native, types, size), alternates_in(self._reader, self._config)
            ),
        )

    def plan_table(self, declared: Table) -> TableWork:
        """Plan one table."""
        name = TableName(tuple(self._config.namespace.split(".")), declared.name)
        native = self._reader.load(name)
        facts = facts_of(native, name) if native else None
        sources = list_sources(self._config, declared, facts)
        state = judge(facts.ancestry if facts else (), self._ledger.records(declared.name), BASE_LAYOUT)
        look = _Look(self._config, declared, name, facts, sources, state, self._ledger, native)
        pending = pending_batches(look)
        schema = pending.schema
        mapped = self._mapped_types(declared, facts, schema)
        wanted = table_schema(schema, mapped)
        layout = layout_of(declared)
        change, evolution = _change(facts, wanted, layout, pending)
        check_columns(self._config, declared, _final_schema(facts, wanted, evolution))
        return self._work(look, pending, wanted, layout, change, evolution)

    def _mapped_types(self, declared: Table, facts: TableFacts | None, schema: SourceSchema) -> dict[str, str]:
        known = {column.name: column.type for column in facts.schema} if facts else {}
        known |= declared_types(declared)
        types = {name: known.get(name) or literal_type(text) for name, text in declared.columns.items()}
        open_ones = {name: declared.columns[name] for name, kind in types.items() if kind is None}
        if open_ones:
            types |= self._analyse(schema.columns, open_ones)
        return {name: kind for name, kind in types.items() if kind is not None}

    def _work(
        self,
        look: _Look,
        pending: Pending,
        wanted: TableSchema,
        layout: Layout,
        change: Change,
        evolution: Evolution | None,
    ) -> TableWork:
        declared, facts = look.declared, look.facts
        runnable = [batch for batch in pending.batches if batch.runs and batch.key in pending.assignment.batches]
        sample = sample_of(look.sources, pending.assignment, runnable, pending.schema, layout)
        predicted = forecast(layout, pending.assignment.batches, sample, self._config.defaults.target_file_mb << 20)
        _, expressions = split_expressions(declared.columns)
        own = _own_bytes(pending.assignment)
        batches = tuple(
            _estimated(batch, own.get(batch.key, 0), sample, pending, layout, wanted) for batch in pending.batches
        )
        plan = TablePlan(
            table=declared.name,
            layout=describe(layout),
            layout_before=describe(facts.layout) if facts and change is Change.RELAYOUT else "",
            change=change,
            schema=tuple((column.name, column.type) for column in _final_schema(facts, wanted, evolution)),
            schema_changes=_schema_changes(evolution),
            base_snapshot_id=facts.current_snapshot_id if facts else None,
            engine="spark" if expressions else "kernel",
            engine_reason=f"columns {', '.join(name for name, _ in expressions)} are Spark SQL expressions"
            if expressions
            else "DuckDB inside Spark tasks reads and lays out whole files",
            batches=batches,
            done=pending.done,
            kept_without_source=pending.kept,
            gaps=gaps([*pending.assignment.batches]),
            bad_files=tuple((file.path, file.reason) for file in pending.bad),
            notes=pending.schema.notes,
            advice=layout_advice(layout, predicted) if runnable else (),
            forecast=predicted if runnable else None,
            cost=_cost(batches, pending.assignment),
            alternates=self._alternates(look, _final_schema(facts, wanted, evolution), predicted),
        )
        return TableWork(
            plan,
            declared,
            look.name,
            layout,
            look.sources,
            pending.schema,
            pending.assignment.batches,
            pending.assignment.shared,
            pending.batch_columns,
            pending.incremental,
            look.state,
            facts,
        )

    def _alternates(self, look: _Look, schema: TableSchema, predicted: Forecast) -> tuple[AlternatePlan, ...]:
        if not look.declared.alternates:
            return ()
        held = look.facts.ancestry[0].summary.get("total-files-size") if look.facts and look.facts.ancestry else None
        types = {column.name: column.type for column in schema}
        size = int(held) if held is not None else predicted.size_bytes
        base = Base(look.declared, look.facts, look.native, types, size)
        return alternate_plans(base, alternates_in(self._reader, self._config))

    def _drops(self) -> tuple[Drop, ...]:
        """Tables that relayout made here and that the configuration no longer names, alternates among them."""
        dropped = []
        bases: list[tuple[TableFacts, NativeTable, Table | None]] = []
        found = alternates_in(self._reader, self._config)
        for table in self._reader.table_names(self._config.namespace):
            if table in OWN_TABLES or table.startswith(ALTERNATE_PREFIX):
                continue
            declared = self._config.tables.get(table)
            if declared is not None and not found:
                continue
            name = TableName(tuple(self._config.namespace.split(".")), table)
            native = self._reader.load(name)
            if native is None:
                continue
            facts = facts_of(native, name)
            bases.append((facts, native, declared))
            if declared is None and facts.is_managed:
                total = facts.ancestry[0].summary.get("total-records") if facts.ancestry else None
                dropped.append(Drop(table, int(total) if total is not None else None))
        return (*dropped, *alternate_drops(bases, found))


@dataclass(frozen=True, slots=True)
class _Look:
    """Everything that was read about one table before thinking begins."""

    config: Config
    declared: Table
    name: TableName
    facts: TableFacts | None
    sources: Sources
    state: LedgerState
    ledger: LedgerReader
    native: NativeTable | None

    def contents(self, files: Sequence[SourceFile], value_columns: Sequence[str]) -> dict[str, FileContent]:
        return contents_of(self.config, self.declared, self.sources, files, value_columns)

    def infer(self, files: Sequence[SourceFile], contents: Mapping[str, FileContent]) -> SourceSchema:
        table = self.facts.schema if self.facts else None
        declared = declared_types(self.declared)
        return infer(files, contents, declared, table, self.sources.formats, self.declared.columns)

    @property
    def mapping_hash(self) -> str:
        return mapping_hash(declared_types(self.declared), self.declared.columns, [self.declared.format or ""])


def chosen_tables(config: Config, names: Sequence[str]) -> list[Table]:
    """The tables that were asked for by bare or full name; when none was, all with a source or alternates."""
    if not names:
        return [table for table in config.tables.values() if table.source or table.alternates]
    chosen = []
    for text in names:
        name = parse(text, config.namespace, config.catalog.name)
        table = config.tables.get(name.table)
        if table is None or name.namespace != tuple(config.namespace.split(".")):
            raise MissingError(
                f"table {text!r} is not declared",
                where=config.file,
                next="declared tables: " + (", ".join(sorted(config.tables)) or "none"),
            )
        if not table.source and not table.alternates:
            raise MissingError(
                f"table {text!r} has no source to ingest", where=config.file, next="declare `source` for it"
            )
        chosen.append(table)
    return chosen


def _change(
    facts: TableFacts | None, wanted: TableSchema, layout: Layout, pending: Pending
) -> tuple[Change, Evolution | None]:
    if facts is None:
        return Change.CREATE, None
    evolution = evolve(facts.schema, wanted) if pending.batches else Evolution((), (), (), ())
    if not same_layout(facts.layout, layout):
        return Change.RELAYOUT, evolution
    return (Change.EVOLVE if evolution.changes_table else Change.NONE), evolution


def _final_schema(facts: TableFacts | None, wanted: TableSchema, evolution: Evolution | None) -> TableSchema:
    if facts is None or evolution is None:
        return wanted
    widened = {name: new for name, _, new in evolution.widened}
    kept = tuple(Column(column.name, widened.get(column.name, column.type)) for column in facts.schema)
    return kept + tuple(evolution.added)


def _schema_changes(evolution: Evolution | None) -> tuple[str, ...]:
    if evolution is None:
        return ()
    added = [f"add {column.name} {column.type}" for column in evolution.added]
    return tuple(added + [f"widen {name} from {old} to {new}" for name, old, new in evolution.widened])


def _estimated(
    batch: PlannedBatch,
    own_bytes: float,
    sample: Sample | None,
    pending: Pending,
    layout: Layout,
    wanted: TableSchema,
) -> PlannedBatch:
    files = pending.assignment.batches.get(batch.key, ())
    rows = batch.rows_estimate
    if files and sample is not None and sample.source_bytes:
        rows = round(own_bytes / sample.source_bytes * sample.rows)
    finer = [*layout.identity_columns, *pending.schema.path_columns, *(column.name for column in wanted)]
    names = [name for name, _ in pending.batch_columns]
    warnings = batch_warnings(batch.key, files, names, dict.fromkeys(finer)) if files else ()
    parts = len(split(files, 1)) if files else 1
    return replace(batch, rows_estimate=rows, warnings=batch.warnings + warnings, parts=parts)


def _own_bytes(assignment: Assignment) -> dict[BatchKey, float]:
    """Bytes of each batch's files; a file that holds several batches is parted equally among them."""
    holders = Counter(file.path for members in assignment.batches.values() for file in members)
    return {
        key: sum(file.size_bytes / holders[file.path] for file in members)
        for key, members in assignment.batches.items()
    }


def _cost(batches: Sequence[PlannedBatch], assignment: Assignment) -> Cost:
    running = [batch for batch in batches if batch.runs]
    loaded = [batch for batch in running if batch.action is Action.LOAD]
    read = {file.path: file.size_bytes for batch in loaded for file in assignment.batches[batch.key]}
    rewritten = [batch for batch in running if batch.action is Action.REWRITE]
    rows = [batch.rows_estimate for batch in (*loaded, *rewritten)]
    known = [count for count in rows if count is not None]
    return Cost(
        len(running),
        len(read),
        sum(read.values()) + sum(batch.size_bytes for batch in rewritten),
        sum(known) if len(known) == len(rows) else None,
    )


def _troubled(declared: Table, error: RelayoutError) -> TablePlan:
    return replace(_untouched(declared), problem=str(error))


def _untouched(declared: Table) -> TablePlan:
    """A plan that has nothing done to the table itself."""
    return TablePlan(
        table=declared.name,
        layout=describe(layout_of(declared)),
        layout_before="",
        change=Change.NONE,
        schema=(),
        schema_changes=(),
        base_snapshot_id=None,
        engine="",
        engine_reason="",
        batches=(),
        done=0,
    )
