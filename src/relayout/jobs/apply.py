"""`relayout apply`: what the plan says, table by table and batch by batch; each batch is marked after its commit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from relayout.commit.failpoints import passing
from relayout.commit.ledger_table import ensure_ledger, has_ledger
from relayout.commit.receipts import AlternateReceipt, BatchReceipt, Migration, Outcome, Receipt, TableReceipt
from relayout.commit.tables import (
    change_layout,
    create_namespace,
    create_table,
    evolve_schema,
    prepare_embedded_catalog,
)
from relayout.config import Config
from relayout.errors import CommitConflict, PlanStale, RelayoutError
from relayout.ingest.plan import OVERWRITE_EDITS, PRUNE, Change, Drop, IngestPlan, PlannedBatch, TablePlan, what_moved
from relayout.jobs.alternates.keeper import Keeper, Run
from relayout.jobs.alternates.pruning import prune
from relayout.jobs.apply_table import RunContext, TableRun
from relayout.jobs.ledger_writer import LedgerWriter
from relayout.jobs.migration import Census, census_of, migration_between
from relayout.jobs.plan import PlannedWork, Planner, TableWork
from relayout.jobs.progress import Level, Listener
from relayout.jobs.record import batch_record
from relayout.jobs.tidying import tidy
from relayout.ledger.records import BASE_LAYOUT, State
from relayout.report.log_lines import snapshot_committed, table_begins, table_complete
from relayout.table.batches import BatchKey
from relayout.table.names import TableName
from relayout.table.schemas import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAN_ROUNDS = 5
"""How often a table is planned again because sources or other writers moved under it."""


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """What the caller allows; `only_failed` limits the run to batches whose last attempt failed."""

    prune: bool = False
    overwrite_edits: bool = False
    only_failed: bool = False

    def allows(self, batch: PlannedBatch) -> bool:
        granted = {*([PRUNE] if self.prune else []), *([OVERWRITE_EDITS] if self.overwrite_edits else [])}
        return not batch.blocked and batch.flags <= granted

    def considered(self, work: TableWork) -> list[PlannedBatch]:
        """The planned batches that this run is about at all."""
        return [batch for batch in work.plan.batches if not self.only_failed or batch.key in work.state.failed]


def runs_anything(planned: PlannedWork, options: ApplyOptions) -> bool:
    """Whether a run would change anything, so that a session is worth its start."""
    if options.prune and planned.plan.drops:
        return True
    if any(alternate.has_work for table in planned.plan.tables for alternate in table.alternates):
        return True
    return any(_has_work(work, options) for work in planned.works.values())


def _has_work(work: TableWork, options: ApplyOptions) -> bool:
    if work.state.unrecorded or (work.plan.change is not Change.NONE and not options.only_failed):
        return True
    for batch in options.considered(work):
        failed = work.state.failed.get(batch.key)
        if options.allows(batch) or (batch.blocked and (failed is None or failed.error != batch.blocked)):
            return True
    return False


def nothing_done(planned: PlannedWork, options: ApplyOptions) -> Receipt:
    """The receipt of a run that had nothing to change; what it had to leave aside is in it."""
    tables = []
    for plan in planned.plan.tables:
        work = planned.works.get(plan.table)
        receipts = left_aside(work, options) if work else []
        tables.append(
            TableReceipt(plan.table, plan.change.value, tuple(receipts), 0.0, None, plan.problem, plan.bad_files)
        )
    return Receipt(planned.plan.plan_id, "", tuple(tables), 0.0)


def left_aside(work: TableWork, options: ApplyOptions) -> list[BatchReceipt]:
    """Receipts of batches that cannot run, or that need a flag which was not given."""
    found = []
    for batch in options.considered(work):
        if batch.blocked:
            found.append(_unmoved(batch, Outcome.FAILED, batch.blocked))
        elif not options.allows(batch):
            found.append(_unmoved(batch, Outcome.SKIPPED, "; ".join([*batch.changes[-1:], f"needs {batch.needs}"])))
    return found


def refuse_if_moved(planned: IngestPlan, present: IngestPlan) -> None:
    """PlanStale names everything that differs between a stored plan and the world in a way that matters."""
    moved = what_moved(planned, present)
    if moved:
        raise PlanStale(
            "the world moved since this plan was made: " + "; ".join(moved),
            where=f"plan {planned.plan_id}",
            next="make a new plan with `relayout plan -o plan.json`, look at it, and apply that one",
        )


class Apply:
    """One run over all tables of a plan."""

    def __init__(
        self, spark: SparkSession, config: Config, planner: Planner, options: ApplyOptions, listener: Listener
    ) -> None:
        self._spark = spark
        self._config = config
        self._planner = planner
        self._options = options
        self._listener = listener
        self._run_id = uuid.uuid4().hex
        self._plan_id = ""
        self._ledger = LedgerWriter(spark, config, listener)

    def run(self, planned: PlannedWork) -> Receipt:
        """Everything the plan holds and the options allow; one table's trouble does not stop the others."""
        begun = time.monotonic()
        self._plan_id = planned.plan.plan_id
        passing("run-begins")
        prepare_embedded_catalog(self._config)
        if not has_ledger(self._config):
            create_namespace(self._spark, self._config)
            ensure_ledger(self._spark, self._config)
        context = RunContext(
            self._spark, self._config, planned.plan.plan_id, self._run_id, self._listener, self._ledger
        )
        tables = []
        self._spark.sparkContext.addJobTag(self._run_id)
        try:
            for plan in planned.plan.tables:
                if plan.problem:
                    tables.append(TableReceipt(plan.table, plan.change.value, (), 0.0, error=plan.problem))
                elif plan.table in planned.works:
                    tables.append(self._table(context, planned.works[plan.table]))
                else:
                    tables.append(self._followed(plan))
        except KeyboardInterrupt:
            context.stopping.set()
            self._spark.sparkContext.cancelJobsWithTag(self._run_id)
            raise
        finally:
            self._spark.sparkContext.removeJobTag(self._run_id)
            self._ledger.try_to_write()
        dropped = tuple(drop.table for drop in planned.plan.drops if self._drop(drop)) if self._options.prune else ()
        passing("run-ends")
        return Receipt(planned.plan.plan_id, self._run_id, tuple(tables), time.monotonic() - begun, dropped)

    # One table.

    def _table(self, context: RunContext, work: TableWork) -> TableReceipt:
        begun = time.monotonic()
        name = work.declared.name
        self._listener.line(Level.INFO, table_begins(name))
        receipts: list[BatchReceipt] = []
        alternates: tuple[AlternateReceipt, ...] = ()
        before: Census | None = None
        error = ""
        try:
            tidy(self._spark, self._config, work, self._ledger)
            if work.plan.change is Change.RELAYOUT:
                before = census_of(self._spark, self._config, work)
            changed = self._changed(work)
            run = Run(self._spark, self._config, self._plan_id, self._run_id, self._listener, self._ledger)
            with Keeper(run, work.name, work.declared) as keeper:
                keeper.prepare()
                self._rounds(context, changed, receipts, keeper)
                self._ledger.write()
                alternates = keeper.catch_up()
        except RelayoutError as problem:
            error = str(problem)
            self._listener.line(Level.ERROR, f"{name}: {problem.what}")
        migration = None if before is None or error else self._migrated(work, before)
        receipt = TableReceipt(
            table=name,
            change=work.plan.change.value,
            batches=tuple(receipts),
            seconds=time.monotonic() - begun,
            migration=migration,
            error=error,
            bad_files=work.plan.bad_files,
            alternates=alternates,
        )
        self._listener.line(Level.INFO, table_complete(receipt))
        for snapshot_id in receipt.snapshot_ids:
            self._listener.line(Level.INFO, snapshot_committed(snapshot_id))
        return receipt

    def _followed(self, plan: TablePlan) -> TableReceipt:
        """A table that others fill: its alternates are brought up to it."""
        begun = time.monotonic()
        name = TableName(tuple(self._config.namespace.split(".")), plan.table)
        run = Run(self._spark, self._config, self._plan_id, self._run_id, self._listener, self._ledger)
        with Keeper(run, name, self._config.tables[plan.table]) as keeper:
            keeper.prepare()
            alternates = keeper.catch_up()
        return TableReceipt(plan.table, plan.change.value, (), time.monotonic() - begun, alternates=alternates)

    def _rounds(self, context: RunContext, work: TableWork, receipts: list[BatchReceipt], keeper: Keeper) -> None:
        """Run what is allowed; what moved meanwhile is planned again and run, a few times at most."""
        chosen = self._chosen(work, None)
        self._tell_blocked(work)
        receipts += left_aside(work, self._options)
        for number in range(PLAN_ROUNDS):
            for batch in chosen:
                for warning in batch.warnings:
                    self._listener.line(Level.WARNING, warning)
            outcome = TableRun(context, work, chosen, keeper).run() if chosen else None
            if outcome is None:
                break
            receipts += outcome.receipts
            if not outcome.again:
                break
            if number + 1 == PLAN_ROUNDS:
                receipts += [self._gave_up(work, key, why) for key, why in outcome.again.items()]
                break
            self._ledger.try_to_write()
            work = self._changed(self._planner.plan_table(work.declared))
            chosen = self._chosen(work, outcome.again.keys())
            missing = outcome.again.keys() - {batch.key for batch in chosen}
            receipts += [self._settled_meanwhile(work, key, outcome.again[key]) for key in missing]

    def _chosen(self, work: TableWork, only: Collection[BatchKey] | None) -> list[PlannedBatch]:
        wanted = [batch for batch in self._options.considered(work) if self._options.allows(batch)]
        return wanted if only is None else [batch for batch in wanted if batch.key in only]

    def _tell_blocked(self, work: TableWork) -> None:
        """Batches with a bad source file count as failed, so that `retry` takes them up."""
        for batch in self._options.considered(work):
            if batch.blocked:
                record = batch_record(
                    work.declared.name, BASE_LAYOUT, batch, State.FAILED, self._plan_id, self._run_id, 0.0
                )
                self._ledger.add([replace(record, error=batch.blocked)])
                self._listener.line(Level.ERROR, f"Batch {batch.key} cannot be loaded: {batch.blocked}")

    def _gave_up(self, work: TableWork, key: BatchKey, why: str) -> BatchReceipt:
        batch = next(batch for batch in work.plan.batches if batch.key == key)
        return _unmoved(batch, Outcome.FAILED, f"{why} ({PLAN_ROUNDS} times)")

    def _settled_meanwhile(self, work: TableWork, key: BatchKey, why: str) -> BatchReceipt:
        """A batch that moved and is not runnable any more: done by others, blocked by a bad file, or gone."""
        batch = next((batch for batch in work.plan.batches if batch.key == key), None)
        if batch is not None:
            outcome = Outcome.FAILED if batch.blocked else Outcome.SKIPPED
            return _unmoved(batch, outcome, batch.blocked or f"needs {batch.needs}")
        note = "loaded by another run meanwhile" if key in work.state.done else f"its sources are gone: {why}"
        return BatchReceipt(key, "load", Outcome.SKIPPED, note=note)

    # The table itself.

    def _changed(self, work: TableWork) -> TableWork:
        """Bring the table into the planned form; what another run did at the same moment is planned with anew."""
        for _ in range(PLAN_ROUNDS - 1):
            try:
                self._change_table(work)
            except CommitConflict:
                work = self._planner.plan_table(work.declared)
            else:
                return work
        self._change_table(work)
        return work

    def _change_table(self, work: TableWork) -> None:
        schema = tuple(Column(name, kind) for name, kind in work.plan.schema)
        if work.plan.change is Change.CREATE:
            exact = [name for name, _ in work.batch_columns]
            create_table(self._spark, self._config, work.name, schema, work.layout, exact, {})
            passing("table-created")
            return
        if work.plan.schema_changes:
            evolve_schema(self._spark, self._config, work.name, schema)
        if work.plan.change is Change.RELAYOUT:
            change_layout(self._spark, self._config, work.name, work.layout)

    def _migrated(self, work: TableWork, before: Census) -> Migration:
        after = census_of(self._spark, self._config, work, before.columns)
        return migration_between(work, before, after)

    def _drop(self, drop: Drop) -> bool:
        """Whether the table went; an alternate stays while its successor is not complete."""
        kept = prune(self._spark, self._config, drop.table)
        told = drop.alternate or f"table {drop.table}, which is no longer declared"
        self._listener.line(Level.WARNING, f"Kept {drop.table}: {kept}" if kept else f"Dropped {told}")
        return not kept


def _unmoved(batch: PlannedBatch, outcome: Outcome, note: str) -> BatchReceipt:
    return BatchReceipt(
        batch.key, batch.action.value, outcome, source_files=batch.files, source_bytes=batch.size_bytes, note=note
    )
