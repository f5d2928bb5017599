"""Applying one table's plan: the table itself, then its batches group by group, each marked only after its commit."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from relayout.commit.batches import BatchPublisher, NewBatch, PlannedOn
from relayout.commit.failpoints import passing
from relayout.commit.left_files import delete_left_files, delete_own_files
from relayout.commit.receipts import BatchReceipt, Outcome
from relayout.commit.removals import batch_predicate
from relayout.commit.rivals import Committed, MovedMeanwhile
from relayout.commit.scratch import scratch_folder, scratch_of_run
from relayout.config import Config
from relayout.errors import CommitConflict, CommitUnknown, RelayoutError
from relayout.ingest.literals import literal_type, split_expressions
from relayout.ingest.plan import Action, PlannedBatch
from relayout.ingest.run import GroupResult, Reading, UnitResult, rewrite_from_table, run_groups
from relayout.ingest.units import Unit, apart, groups_of, units_of
from relayout.jobs.alternates.keeper import Keeper
from relayout.jobs.ledger_writer import LedgerWriter
from relayout.jobs.plan import TableWork
from relayout.jobs.progress import Level, Listener
from relayout.jobs.record import batch_record, landed, source_stamps
from relayout.kernels.target import target_for
from relayout.ledger.records import BASE_LAYOUT, BatchRecord, BatchStamp, SourceStamp, State
from relayout.read.catalog import CatalogReader
from relayout.read.ledger import LedgerReader
from relayout.read.tables import facts_of
from relayout.report.log_lines import batch_done, batch_failed, batch_retried
from relayout.spark.jvm.iceberg import JavaTable
from relayout.spark.table_rows import TableRows
from relayout.table.batches import BatchKey
from relayout.table.facts import TableFacts
from relayout.table.types import duckdb_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REWRITE_PART_BYTES = 1_000_000_000
REWRITE_TRIES = 3


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all tables of one run share."""

    spark: SparkSession
    config: Config
    plan_id: str
    run_id: str
    listener: Listener
    ledger: LedgerWriter
    stopping: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class TableOutcome:
    """Receipts so far, and batches that must be planned again because the world moved."""

    receipts: list[BatchReceipt] = field(default_factory=list)
    again: dict[BatchKey, str] = field(default_factory=dict)


class TableRun:
    """One pass over the runnable batches of one table."""

    def __init__(self, context: RunContext, work: TableWork, batches: Sequence[PlannedBatch], keeper: Keeper) -> None:
        self._context = context
        self._keeper = keeper
        self._work = work
        self._batches = {batch.key: batch for batch in batches}
        self._outcome = TableOutcome()
        self._total = len(batches)
        self._landed: set[BatchKey] = set()
        self._holders: dict[BatchKey, set[BatchKey]] = {}
        for key, members in work.incremental.items():
            for member in members:
                self._holders.setdefault(member, set()).add(key)
        self._reader = CatalogReader(context.config)
        full_name = work.name.spark_sql(context.config.catalog.name)
        native = self._reader.load(work.name)
        if native is None:
            raise CommitConflict(f"{work.name} was dropped meanwhile", next="run `relayout apply` again")
        self._facts = facts_of(native, work.name)
        self._data_location = JavaTable(context.spark, full_name).data_location()
        self._publisher = BatchPublisher(
            context.spark,
            context.config,
            work.name,
            context.plan_id,
            context.run_id,
            PlannedOn(work.facts.current_snapshot_id if work.facts else None, work.state.newest_stamp),
        )
        self._reading = self._reading_with(native.schema())

    def run(self) -> TableOutcome:
        """Load, rewrite and remove; whatever happens to one batch leaves the others alone."""
        self._context.listener.advance(self._work.declared.name, 0, self._total)
        by_action: dict[Action, list[PlannedBatch]] = {action: [] for action in Action}
        for batch in self._batches.values():
            by_action[batch.action].append(batch)
        with scratch_of_run(self._data_location, self._context.run_id):
            self._load(by_action[Action.LOAD])
            for batch in by_action[Action.REWRITE]:
                self._rewrite(batch)
            if by_action[Action.REMOVE]:
                self._remove(by_action[Action.REMOVE])
        return self._outcome

    def _reading_with(self, schema: object) -> Reading:
        work, config = self._work, self._context.config
        literals, expressions = split_expressions(work.declared.columns)
        kinds = {column.name: column.type for column in self._facts.schema}
        target = target_for(
            self._facts,
            schema,  # type: ignore[arg-type]
            data_location=self._data_location,
            scratch=str(scratch_folder(self._data_location, self._context.run_id)),
            file_prefix=self._context.run_id,
            batch_columns=work.batch_columns,
            target_file_bytes=config.defaults.target_file_mb << 20,
            store=dict(config.catalog.properties),
        )
        # What no pending file holds any more is read too: as null.
        wanted = {column.name: column.type for column in self._facts.schema if column.name not in work.declared.columns}
        wanted |= {column.name: column.type for column in work.schema.columns}
        read = tuple((name, kind) for name, kind in wanted.items() if name not in dict(literals))
        return Reading(
            read_columns=read,
            formats=work.sources.formats,
            literals=tuple((name, _literal(text, kinds[name])) for name, text in literals),
            expressions=expressions,
            target=target,
            memory_bytes=config.spark.task_memory_bytes,
            others=self._keeper.targets,
        )

    # Loading from sources.

    def _load(self, batches: Sequence[PlannedBatch]) -> None:
        delays = self._context.config.defaults
        waiting = list(batches)
        for attempt in range(max(1, delays.retries)):
            last = attempt + 1 >= max(1, delays.retries)
            failed = self._load_once(waiting, attempt, last)
            if not failed or self._context.stopping.is_set():
                return
            delay = delays.retry_delay_ms * 2**attempt / 1000
            for batch, reason in failed:
                line = batch_retried(batch.key, reason, attempt + 2, delays.retries, delay)
                self._context.listener.line(Level.WARNING, line)
            self._context.stopping.wait(delay)
            waiting = [batch for batch, _ in failed]

    def _load_once(self, batches: Sequence[PlannedBatch], attempt: int, last: bool) -> list[tuple[PlannedBatch, str]]:
        """Batches that failed and may be tried again, with the reason; after the last attempt they are recorded."""
        cores = int(self._context.spark.sparkContext.defaultParallelism)
        units = units_of(batches, self._work.batches, self._work.shared, cores, self._fans_out())
        groups = apart(units) if attempt else groups_of(units, cores)
        prefix = self._context.run_id if attempt == 0 else f"{self._context.run_id}-{attempt}"
        target = replace(self._reading.target, file_prefix=prefix)
        again: list[tuple[PlannedBatch, str]] = []
        reading = replace(self._reading, target=target)
        with closing(run_groups(self._context.spark, groups, reading, self._context.stopping)) as ended:
            for group in ended:
                passing("files-written")
                for unit in group.units:
                    if unit.error:
                        again += self._unit_failed(unit, group.seconds, last)
                self._publish_group(group)
        return again

    def _fans_out(self) -> bool:
        constant = {name for name, _ in self._work.batch_columns}
        return any(
            field.transform != "void" and not (field.transform == "identity" and field.column in constant)
            for field in self._facts.spec.fields
        )

    def _unit_failed(self, unit: UnitResult, seconds: float, last: bool) -> list[tuple[PlannedBatch, str]]:
        if unit.moved:
            self._outcome.again |= {batch.key: unit.error for batch in unit.unit.batches}
            delete_own_files(unit.left, self._reading.target.store)
            return []
        if not last:
            delete_own_files(unit.left, self._reading.target.store)
            return [(batch, unit.error) for batch in unit.unit.batches]
        for batch in unit.unit.batches:
            self._failed(batch, unit.error, seconds, unit.left)
        return []

    # Making them visible.

    def _publish_group(self, group: GroupResult) -> None:
        results = [unit for unit in group.units if not unit.error]
        if results:
            self._publish(results, group.seconds / max(1, len(results)))

    def _publish(self, results: Sequence[UnitResult], seconds: float, read_at: int | None = None) -> None:
        begun = time.monotonic()
        new = {key: NewBatch(self._stamp(key, files), files) for unit in results for key, files in unit.files.items()}
        try:
            committed = self._publisher.publish(list(new.values()), read_at)
        except MovedMeanwhile as moved:
            self._outcome.again |= dict.fromkeys(moved.keys, moved.what)
            self._forget(new, moved.keys)
            rest = [unit for unit in results if not set(unit.files) & set(moved.keys)]
            # A unit that shares files with a moved batch is planned again as a whole.
            also = {key for unit in results if unit not in rest for key in unit.files} - set(moved.keys)
            self._outcome.again |= dict.fromkeys(also, moved.what)
            self._forget(new, also)
            self._keeper.forget(unit.others for unit in results if unit not in rest)
            if rest:
                self._publish(rest, seconds, read_at)
            return
        except CommitUnknown as unknown:
            for key in new:
                # Its files may be in use, so the ledger must not offer them for deletion.
                self._failed(self._batches[key], _with_remedy(unknown), seconds, ())
            self._keeper.forget(unit.others for unit in results)
            return
        except RelayoutError as error:
            self._keeper.forget(unit.others for unit in results)
            if isinstance(error, CommitConflict) and read_at is not None:
                raise
            for key, batch in new.items():
                self._failed(self._batches[key], _with_remedy(error), seconds, _paths(batch))
            return
        hashes = {path: digest for unit in results for path, digest in unit.hashes.items()}
        self._landed_as(committed, new, hashes, seconds + (time.monotonic() - begun) / len(new))
        others = [unit.others for unit in results]
        if committed.elsewhere:
            self._keeper.forget(others)
        else:
            self._keeper.follow(others, list(new), committed.snapshot)

    def _stamp(self, key: BatchKey, files: Sequence[Mapping[str, object]]) -> BatchStamp:
        batch = self._batches[key]
        return BatchStamp(
            key,
            batch.fingerprint,
            batch.schema_hash,
            sum(int(str(file["record-count"])) for file in files),
            len(files),
            sum(int(str(file["file-size-in-bytes"])) for file in files),
            removed=batch.action is Action.REMOVE,
        )

    def _landed_as(
        self, committed: Committed, new: Mapping[BatchKey, NewBatch], hashes: Mapping[str, str], seconds: float
    ) -> None:
        if committed.elsewhere:
            self._forget(new, new)
            for key in new:
                note = f"loaded from the same sources by another run, in snapshot {committed.snapshot.snapshot_id}"
                self._receipt(key, Outcome.SKIPPED, None, seconds, note, committed.snapshot.snapshot_id)
            return
        self._landed |= new.keys()
        records = []
        for key, batch in new.items():
            done = State.REMOVED if batch.stamp.removed else State.DONE
            line = landed(self._record(key, done, seconds), batch.stamp, committed.snapshot, committed.previous_stamp)
            records.append(replace(line, incremental_keys=self._complete_keys(key), sources=self._sources(key, hashes)))
            self._receipt(key, Outcome.DONE, batch.stamp, seconds, "", committed.snapshot.snapshot_id)
        self._context.ledger.add(records)

    def _forget(self, new: Mapping[BatchKey, NewBatch], keys: Iterable[BatchKey]) -> None:
        """Delete files that were written for nothing, unless a commit of unknown outcome may use them.

        A client that repeats a request by itself can be told of a conflict with its own commit, so history is asked.
        """
        written = [path for key in set(keys) - self._publisher.in_doubt for path in _paths(new[key])]
        native = self._reader.load(self._work.name) if written else None
        if native is not None:
            delete_left_files(native, written, self._reading.target.store)

    # From the table itself, and out of it.

    def _rewrite(self, batch: PlannedBatch) -> None:
        for attempt in range(REWRITE_TRIES):
            native = self._reader.load(self._work.name)
            if native is None or native.current_snapshot() is None:
                self._failed(batch, "the table has no rows any more", 0.0, ())
                return
            facts = facts_of(native, self._work.name)
            begun = time.monotonic()
            result = self._rows_laid_out(batch, facts, attempt)
            seconds = time.monotonic() - begun
            if result.error:
                self._failed(batch, result.error, seconds, result.left)
                return
            try:
                self._publish([result], seconds, facts.current_snapshot_id)
            except CommitConflict as conflict:
                written = [str(file["file-path"]) for file in result.files[batch.key]]
                delete_own_files(written, self._reading.target.store)
                if attempt + 1 == REWRITE_TRIES:
                    self._failed(batch, conflict.what, seconds, ())
            else:
                return

    def _rows_laid_out(self, batch: PlannedBatch, facts: TableFacts, attempt: int) -> UnitResult:
        snapshot_id = facts.current_snapshot_id
        if snapshot_id is None:
            raise CommitConflict(f"{self._work.name} was emptied meanwhile", next="run `relayout apply` again")
        rows = TableRows(
            self._work.name.spark_sql(self._context.config.catalog.name),
            snapshot_id,
            batch_predicate([batch.key], facts),
            tuple(column.name for column in facts.schema),
        )
        target = replace(self._reading.target, file_prefix=f"{self._context.run_id}-{attempt}-{uuid.uuid4().hex[:6]}")
        parts = max(1, -(-batch.size_bytes // REWRITE_PART_BYTES))
        return rewrite_from_table(
            self._context.spark, Unit((batch,), ()), rows, replace(self._reading, target=target), parts
        )

    def _remove(self, batches: Sequence[PlannedBatch]) -> None:
        for batch in batches:
            self._publish([UnitResult(Unit((batch,), ()), {batch.key: ()}, {})], 0.0)

    # What came of it.

    def _failed(self, batch: PlannedBatch, reason: str, seconds: float, left: Sequence[str]) -> None:
        record = self._record(batch.key, State.FAILED, seconds)
        self._context.ledger.add([replace(record, error=reason, left_files=tuple(left))])
        self._receipt(batch.key, Outcome.FAILED, None, seconds, reason, None)

    def _record(self, key: BatchKey, state: State, seconds: float) -> BatchRecord:
        context = self._context
        batch = self._batches[key]
        return batch_record(
            self._work.declared.name, BASE_LAYOUT, batch, state, context.plan_id, context.run_id, seconds
        )

    def _sources(self, key: BatchKey, hashes: Mapping[str, str]) -> tuple[SourceStamp, ...] | None:
        if self._batches[key].action is Action.LOAD:
            return source_stamps(self._work.batches[key], hashes, self._work.shared)
        done = self._work.state.done.get(key)
        if done is None:
            return None
        # Rows that were only laid out anew still come from the files they were loaded from.
        ledger = LedgerReader(self._context.config, self._reader)
        known = ledger.records_with_sources(self._work.declared.name, {done.snapshot_id})
        return next((line.sources for line in known if line.batch == key and line.sources is not None), None)

    def _complete_keys(self, key: BatchKey) -> tuple[BatchKey, ...]:
        """Incremental keys of the batch of which all batches have landed by now."""
        done = self._landed | self._work.state.done.keys()
        return tuple(member for member in self._work.incremental.get(key, ()) if self._holders[member] <= done)

    def _receipt(
        self, key: BatchKey, outcome: Outcome, stamp: BatchStamp | None, seconds: float, note: str, snapshot: int | None
    ) -> None:
        batch = self._batches[key]
        receipt = BatchReceipt(
            key=key,
            action=batch.action.value,
            outcome=outcome,
            rows=stamp.rows if stamp else 0,
            files=stamp.files if stamp else 0,
            size_bytes=stamp.size_bytes if stamp else 0,
            source_files=batch.files,
            source_bytes=batch.size_bytes,
            seconds=round(seconds, 3),
            snapshot_id=snapshot,
            note=note,
        )
        self._outcome.receipts.append(receipt)
        number = len(self._outcome.receipts)
        if outcome is Outcome.FAILED:
            self._context.listener.line(Level.ERROR, batch_failed(number, self._total, key, note))
        else:
            self._context.listener.line(Level.INFO, batch_done(number, self._total, receipt))
        self._context.listener.advance(self._work.declared.name, number, self._total)


def _with_remedy(error: RelayoutError) -> str:
    return f"{error.what}; {error.next}" if error.next else error.what


def _paths(batch: NewBatch) -> tuple[str, ...]:
    return tuple(str(file["file-path"]) for file in batch.files)


def _literal(text: str, kind: str) -> str:
    """A constant column as DuckDB text in the column's type."""
    told = literal_type(text)
    return f"CAST({text} AS {duckdb_type(kind)})" if told is not None else text
