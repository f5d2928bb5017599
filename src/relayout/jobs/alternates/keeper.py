"""Keeping the alternates of one base in step for the length of one run.

While batches are loaded their rows are laid out for the alternates in the same task, and committed right after the
base. Whatever is missing at the end is taken from the base's pinned snapshot. An alternate that fails harms nobody.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from relayout.alternates.freshness import followed, freshest, standing
from relayout.alternates.linter import worthwhile
from relayout.alternates.registry import Found, Registry, curve_of, described
from relayout.alternates.run import lay_out
from relayout.commit.alternates import AccountAfter, AlternatePublisher, Relaid
from relayout.commit.failpoints import passing
from relayout.commit.left_files import delete_own_files
from relayout.commit.receipts import AlternateReceipt, Outcome
from relayout.commit.removals import batch_predicate
from relayout.commit.scratch import scratch_folder, scratch_of_run
from relayout.config import Config
from relayout.config.model import Table
from relayout.errors import CommitConflict, RelayoutError
from relayout.jobs.alternates.due import Due, content_of, due_of, lagging
from relayout.jobs.alternates.making import Maker
from relayout.jobs.alternates.shelf import alternates_in, registry_for
from relayout.jobs.ledger_writer import LedgerWriter
from relayout.jobs.progress import Level, Listener
from relayout.jobs.tidying import sweep
from relayout.kernels.ingest import failure_text
from relayout.kernels.order import Curve
from relayout.kernels.outputs import LaidOut
from relayout.kernels.target import target_for
from relayout.kernels.write import Target
from relayout.read.catalog import CatalogReader
from relayout.read.live_files import files_of_batches
from relayout.read.tables import facts_of, fields_by_name, means_the_same
from relayout.spark.jvm.iceberg import JavaTable
from relayout.spark.session import ROUTING, set_for_now
from relayout.spark.table_rows import TableRows
from relayout.table.alternates import MOST_HYBRID_BATCHES, Account
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot, TableFacts
from relayout.table.layouts import layout_of
from relayout.table.names import TableName
from relayout.table.types import duckdb_type

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable
    from pyspark.sql import SparkSession

FileJson = tuple[Mapping[str, Any], ...]

EVERY_SECONDS = 30.0
ROUNDS = 3
PART_BYTES = 1_000_000_000
SMALLEST_PART_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """What all tables of one run share, as far as alternates need it; without a ledger nothing is tidied up."""

    spark: SparkSession
    config: Config
    plan_id: str
    run_id: str
    listener: Listener
    ledger: LedgerWriter | None = None


@dataclass(slots=True)
class _Kept:
    """One alternate in the course of the run, what was done to it, and the table that is to replace it.

    `waiting` are files of batches that the base shows since a snapshot, to be committed together.
    """

    found: Found
    publisher: AlternatePublisher
    target: Target
    one_pass: bool = False
    waiting: dict[BatchKey, tuple[int, FileJson]] = field(default_factory=dict)
    successor: str = ""
    gave_up: bool = False
    action: str = ""
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    error: str = ""

    def took(self, relaid: Relaid, seconds: float) -> None:
        """Count what landed."""
        for stamp in relaid.stamps:
            self.rows += stamp.rows
            self.files += stamp.files
            self.size_bytes += stamp.size_bytes
        self.seconds += seconds
        self.error = ""

    def receipt(self) -> AlternateReceipt:
        return AlternateReceipt(
            name=self.found.name,
            table=self.found.table,
            layout=described(self.found.declaration),
            action=self.action,
            outcome=Outcome.FAILED if self.error else Outcome.DONE,
            rows=self.rows,
            files=self.files,
            size_bytes=self.size_bytes,
            seconds=round(self.seconds, 3),
            note=self.error,
        )


class Keeper:
    """The alternates of one base; without declared ones and without old ones it does nothing.

    Inside its block it holds a scratch folder in every alternate, which tells the next run if this one dies.
    """

    def __init__(self, run: Run, base: TableName, declared: Table) -> None:
        self._scratch = ExitStack()
        self._run = run
        self._base = base
        self._declared = declared
        self._reader = CatalogReader(run.config)
        self._full_name = base.spark_sql(run.config.catalog.name)
        self._kept: dict[str, _Kept] = {}
        self._broken: list[AlternateReceipt] = []
        self._store = dict(run.config.catalog.properties)
        self._committed_at = time.monotonic()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        for kept in self._kept.values():
            # Nobody was told of these, and nobody will be.
            delete_own_files([path for _, files in kept.waiting.values() for path in _paths(files)], self._store)
        self._scratch.close()

    def prepare(self, *, make: bool = True) -> None:
        """Make what is declared and not there, bring the others to the base's columns, and list them at the base.

        Without `make` only those are kept that were built before.
        """
        native, facts = self._look()
        if native is None or facts is None:
            return
        try:
            self._prepare(native, facts, make=make)
        except Exception as error:  # noqa: BLE001
            # Whatever is wrong with alternates, the base goes on without them.
            self._cannot_keep(", ".join(one.name for one in self._declared.alternates), "", "", error)

    def _prepare(self, native: NativeTable, facts: TableFacts, *, make: bool) -> None:
        found = alternates_in(self._reader, self._run.config)
        wanted = worthwhile(self._declared.alternates, layout_of(self._declared))
        registry = registry_for(wanted, found, facts, native)
        if not registry.matched and not registry.others:
            return
        exact = [name for name, _ in self._batch_columns(facts)]
        maker = Maker(self._run.spark, self._run.config, facts, native, exact)
        for alternate, match in registry.matched:
            if not make and (match is None or not match.facts.ancestry):
                continue
            try:
                self._keep(maker.fitted(match, alternate) if match else maker.made(alternate), facts)
            except Exception as error:  # noqa: BLE001
                # One that cannot be made or changed does not stand in the way of the others.
                table, layout = (match.table, described(match.declaration)) if match else ("", "")
                self._cannot_keep(alternate.name, table, layout, error)
        there = {match.table for _, match in registry.matched if match}
        maker.listed({*self._kept, *there, *(one.table for one in registry.others)})
        for old, successor in list(self._superseded(registry)):
            self._keep(old, facts, successor)

    def _superseded(self, registry: Registry) -> Iterator[tuple[Found, str]]:
        """Alternates of an old declaration that have a successor, with the table of that."""
        by_name = {kept.found.name: table for table, kept in self._kept.items()}
        yield from ((old, by_name[old.name]) for old in registry.others if old.name in by_name)

    def _keep(self, found: Found, base: TableFacts, successor: str = "") -> None:
        run = self._run
        target = self._target(found, base)
        if run.ledger is not None:
            sweep(run.spark, run.config, found.facts.name, self._base.table, found.table, run.ledger)
        self._scratch.enter_context(scratch_of_run(target.data_location, run.run_id))
        publisher = AlternatePublisher(run.spark, run.config, found.facts.name, run.plan_id, run.run_id)
        fresh = standing(found.facts.ancestry, base.ancestry) if base.ancestry else None
        follows = not found.facts.ancestry if fresh is None else _can_follow(fresh)
        self._kept[found.table] = _Kept(
            found, publisher, target, one_pass=follows and not successor, successor=successor
        )

    def _target(self, found: Found, base: TableFacts) -> Target:
        native = self._reader.load(found.facts.name)
        if native is None:
            raise CommitConflict(f"{found.facts.name} was dropped meanwhile", next="run `relayout apply` again")
        config = self._run.config
        place = JavaTable(self._run.spark, found.facts.name.spark_sql(config.catalog.name)).data_location()
        target = target_for(
            facts_of(native, found.facts.name),
            native.schema(),
            data_location=place,
            scratch=str(scratch_folder(place, self._run.run_id)),
            file_prefix=self._run.run_id,
            batch_columns=self._batch_columns(base),
            target_file_bytes=config.defaults.target_file_mb << 20,
            store=self._store,
        )
        return replace(target, curve=_curve(found))

    def _batch_columns(self, facts: TableFacts) -> tuple[tuple[str, str], ...]:
        kinds = {column.name: column.type for column in facts.schema}
        names = self._declared.batch_partition_columns
        return tuple((name, kinds[name]) for name in names) if set(names) <= kinds.keys() else ()

    def _look(self) -> tuple[NativeTable | None, TableFacts | None]:
        native = self._reader.load(self._base)
        return native, facts_of(native, self._base) if native is not None else None

    # In the same pass as the base.

    @property
    def targets(self) -> Mapping[str, Target]:
        """Targets, by table, that are to get every batch while it is loaded."""
        return {table: kept.target for table, kept in self._kept.items() if kept.one_pass and not kept.error}

    def follow(self, units: Iterable[Mapping[str, LaidOut]], keys: Sequence[BatchKey], at: Snapshot) -> None:
        """Take what was laid out, unit by unit, beside these batches that the base shows since the snapshot `at`.

        It is committed in groups, because a commit for each of many small batches would take longer than their rows.
        """
        for table, parts in _by_table(units).items():
            kept = self._kept[table]
            kept.error = next((part.error for part in parts if part.error), kept.error)
            kept.seconds += sum(part.seconds for part in parts)
            delete_own_files([path for part in parts for path in part.left], self._store)
            files = {key: members for part in parts for key, members in part.files.items() if key in keys}
            for key in kept.waiting.keys() & files.keys():
                delete_own_files(_paths(kept.waiting[key][1]), self._store)
            kept.waiting |= {key: (at.snapshot_id, members) for key, members in files.items()}
        if time.monotonic() - self._committed_at > EVERY_SECONDS:
            self._commit_waiting()

    def _commit_waiting(self) -> None:
        for kept in self._kept.values():
            if not kept.waiting:
                continue
            kept.action = kept.action or "built with the base"
            try:
                newest = self._newest({at for at, _ in kept.waiting.values()})
            except RelayoutError as error:
                # The catalog does not answer; what waits may be committed the next time, or goes with this run.
                kept.error = _what(error)
                continue
            waiting, kept.waiting = kept.waiting, {}
            files = {key: members for key, (_, members) in waiting.items()}
            since = {key: at for key, (at, _) in waiting.items()}
            self._publish(kept, Relaid(newest, tuple(files), files), self._account_at(newest, since))
        self._committed_at = time.monotonic()

    def _newest(self, snapshots: set[int]) -> int:
        """The newest of these base snapshots; where none is in the history any more, any of them."""
        _, facts = self._look()
        history = [one.snapshot_id for one in facts.ancestry] if facts else []
        return next((number for number in history if number in snapshots), min(snapshots))

    def forget(self, units: Iterable[Mapping[str, LaidOut]]) -> None:
        """Delete what was laid out for batches that did not land."""
        for parts in _by_table(units).values():
            delete_own_files([path for part in parts for path in part.paths], self._store)

    def _account_at(self, at: int, since: Mapping[BatchKey, int]) -> AccountAfter:
        """The account at a base snapshot, of batches that were laid out as earlier ones had them."""

        def after(alternate: Sequence[Snapshot]) -> Account | None:
            _, facts = self._look()
            history = facts.ancestry if facts else ()
            place = next((number for number, one in enumerate(history) if one.snapshot_id == at), None)
            if place is None:
                return None
            return followed(alternate, since, history[place:])

        return after

    def _publish(self, kept: _Kept, relaid: Relaid, account_after: AccountAfter) -> bool:
        begun = time.monotonic()
        try:
            landed = kept.publisher.publish(relaid, account_after)
        except Exception as error:  # noqa: BLE001
            # An alternate's trouble in three languages is told in its receipt, and harms nobody else.
            kept.error = _what(error)
            landed = None
        if landed is None and not kept.publisher.in_doubt:
            delete_own_files(LaidOut(relaid.files).paths, self._store)
        if landed is not None:
            kept.took(relaid, time.monotonic() - begun)
        return landed is not None

    # From the base's own rows.

    def catch_up(self) -> tuple[AlternateReceipt, ...]:
        """Take what alternates lack from the base's current snapshot; receipts of all that anything was done to."""
        self._commit_waiting()
        for _ in range(ROUNDS):
            due = self._all_due()
            if not due:
                break
            for what, group in _alike(due):
                self._refresh(what, group)
        return (*(kept.receipt() for kept in self._kept.values() if kept.action or kept.error), *self._broken)

    def _all_due(self) -> list[tuple[_Kept, Due]]:
        found: list[tuple[_Kept, Due]] = []
        behind: set[str] = set()
        for table, kept in self._kept.items():
            if kept.gave_up or (kept.successor and kept.successor not in behind):
                # An old layout is only kept up for as long as the new one cannot serve.
                continue
            behind.add(table)
            try:
                due = self._due(kept)
            except Exception as error:  # noqa: BLE001
                # One alternate whose metadata is damaged must not keep the others from being refreshed.
                self._trouble(kept, error)
                continue
            if due is None:
                behind.discard(table)
            else:
                found.append((kept, due))
        return found

    def _due(self, kept: _Kept) -> Due | None:
        kept.found = self._after_rollback(kept)
        # The base is looked at after the alternate, which else may seem to know a future that was taken back.
        native, facts = self._look()
        if native is None or facts is None:
            return None
        columns = [name for name, _ in self._batch_columns(facts)]
        found = due_of(self._run.spark, self._full_name, native, facts, kept.found, columns)
        return found or lagging(facts, kept.found)

    def _after_rollback(self, kept: _Kept) -> Found:
        """The alternate as it is; where the base went back to an older snapshot, the alternate goes along."""
        now = self._found_again(kept)
        _, base = self._look()
        if base is None or not base.ancestry:
            return now
        best = freshest(now.facts.ancestry, base.ancestry)
        if best is None or not now.facts.ancestry or not standing(now.facts.ancestry, base.ancestry).empty:
            return now
        if best.snapshot_id == now.facts.ancestry[0].snapshot_id:
            return now
        kept.publisher.roll_back(best.snapshot_id)
        kept.action = "rolled back"
        return self._found_again(kept)

    def _found_again(self, kept: _Kept) -> Found:
        native = self._reader.load(kept.found.facts.name)
        if native is None:
            raise CommitConflict(f"{kept.found.facts.name} was dropped meanwhile", next="run `relayout apply` again")
        return Found(facts_of(native, kept.found.facts.name))

    def _refresh(self, due: Due, group: Sequence[_Kept]) -> None:
        """Read the base once for all these alternates; where that fails, once for each of them."""
        begun = time.monotonic()
        try:
            results = self._rows_for(due, group)
        except Exception as error:  # noqa: BLE001
            # Spark fails in three languages; one layout's failure is a value here.
            results = [LaidOut({}, _what(error)) for _ in group]
        if len(group) > 1 and any(result.error for result in results):
            for result in results:
                delete_own_files(result.paths, self._store)
            for kept in group:
                self._refresh(due, [kept])
            return
        passing("alternate-files-written")
        for kept, result in zip(group, results, strict=True):
            kept.action = kept.action or ("built" if due.everything else "refreshed" if due.keys else "accounted for")
            kept.seconds += (time.monotonic() - begun) / len(group)
            if result.error:
                delete_own_files(result.paths, self._store)
                self._trouble(kept, RelayoutError(result.error))
                continue
            relaid = Relaid(due.base_snapshot_id, due.keys, result.files)
            self._publish(kept, relaid, _while_unchanged(kept.found, Account(due.base_snapshot_id)))
            kept.gave_up = bool(kept.error)

    def _rows_for(self, due: Due, group: Sequence[_Kept]) -> list[LaidOut]:
        if not due.keys:
            return [LaidOut({}) for _ in group]
        native, facts = self._look()
        if native is None or facts is None:
            return [LaidOut({}, "the base was dropped meanwhile") for _ in group]
        condition = "true" if due.everything else batch_predicate(due.keys, facts)
        same = means_the_same(native, due.base_snapshot_id)
        # Where columns were renamed since, only the table as it is now can tell which is which.
        at = due.base_snapshot_id if same else None
        held = {field.name for field in native.schema().fields} & fields_by_name(native, at).keys()
        rows = TableRows(self._full_name, at, condition, tuple(held))
        prefix = f"{self._run.run_id}-{uuid.uuid4().hex[:6]}"
        targets = [replace(kept.target, file_prefix=prefix) for kept in group]
        parts = self._parts(native, due)
        with set_for_now(self._run.spark, {ROUTING: "off"}):
            laid_out = lay_out(self._run.spark, rows, targets, self._run.config.spark.task_memory_bytes, parts)
        present = self._look()[1]
        if at is None and (present is None or present.current_snapshot_id != due.base_snapshot_id):
            return [replace(each, error=each.error or "the base changed while it was read") for each in laid_out]
        return laid_out

    def _parts(self, native: NativeTable, due: Due) -> int:
        files = files_of_batches(native, due.keys)
        size = sum(int(str(live.content["file-size-in-bytes"])) for live in (*files.whole, *files.mixed))
        cores = int(self._run.spark.sparkContext.defaultParallelism)
        return max(1, -(-size // PART_BYTES), min(cores, size // SMALLEST_PART_BYTES))

    # What went wrong.

    def _trouble(self, kept: _Kept, error: Exception) -> None:
        kept.error = _what(error)
        kept.gave_up = True
        kept.action = kept.action or "refreshed"
        self._run.listener.line(
            Level.ERROR, f"Alternate {kept.found.name} of {self._base.table} is behind: {kept.error}"
        )

    def _cannot_keep(self, name: str, table: str, layout: str, error: Exception) -> None:
        what = _what(error)
        self._run.listener.line(Level.ERROR, f"Alternate {name} of {self._base.table} cannot be kept: {what}")
        self._broken.append(AlternateReceipt(name, table, layout, "prepared", Outcome.FAILED, note=what))


def _curve(found: Found) -> Curve | None:
    """The curve that rows are to lie along, in the types that the alternate has."""
    told = curve_of(found.declaration)
    if told is None:
        return None
    kind, columns = told
    return Curve(kind, tuple((name, duckdb_type(found.facts.type_of(name))) for name in columns))


def _what(error: Exception) -> str:
    return error.what if isinstance(error, RelayoutError) else failure_text(error)


def _paths(files: FileJson) -> list[str]:
    return [str(file["file-path"]) for file in files]


def _by_table(units: Iterable[Mapping[str, LaidOut]]) -> dict[str, list[LaidOut]]:
    found: dict[str, list[LaidOut]] = {}
    for unit in units:
        for table, part in unit.items():
            found.setdefault(table, []).append(part)
    return found


def _can_follow(account: Account) -> bool:
    """Whether batch by batch is a way to become whole; a long list of stale batches would stand in every commit."""
    return not account.only and len(account.batches) <= MOST_HYBRID_BATCHES


def _alike(due: Sequence[tuple[_Kept, Due]]) -> Iterator[tuple[Due, list[_Kept]]]:
    """Alternates that lack the same rows, together."""
    for what in dict.fromkeys(each for _, each in due):
        yield what, [kept for kept, each in due if each == what]


def _while_unchanged(found: Found, account: Account) -> AccountAfter:
    """This account, as long as the alternate holds the rows that it was told for."""
    expected = content_of(found.facts.ancestry)
    return lambda alternate: account if content_of(alternate) == expected else None
