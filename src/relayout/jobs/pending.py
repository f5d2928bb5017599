"""Which batches are open and why: the listing, the ledger and the table's history laid side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from relayout.config.model import Table
from relayout.ingest.batches import Assignment, SourceChanges, assign
from relayout.ingest.plan import OVERWRITE_EDITS, PRUNE, Action, PlannedBatch, Reason
from relayout.ingest.schema import SourceSchema, path_column_types
from relayout.jobs.loaded import LoadedSources
from relayout.jobs.sources import Sources, declared_types
from relayout.ledger.records import fingerprint_of
from relayout.ledger.state import DoneBatch, LedgerState
from relayout.read.edits import edited_batches
from relayout.read.ledger import LedgerReader
from relayout.table.batches import BatchKey
from relayout.table.facts import TableFacts
from relayout.table.layouts import describe, layout_of, without_level_order
from relayout.table.sources import BadFile, FileContent, SourceFile

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable


class Look(Protocol):
    """What was read about one table."""

    @property
    def declared(self) -> Table: ...
    @property
    def facts(self) -> TableFacts | None: ...
    @property
    def sources(self) -> Sources: ...
    @property
    def state(self) -> LedgerState: ...
    @property
    def ledger(self) -> LedgerReader: ...
    @property
    def native(self) -> NativeTable | None: ...
    @property
    def mapping_hash(self) -> str: ...

    def contents(self, files: Sequence[SourceFile], value_columns: Sequence[str]) -> dict[str, FileContent]: ...
    def infer(self, files: Sequence[SourceFile], contents: Mapping[str, FileContent]) -> SourceSchema: ...


@dataclass(frozen=True, slots=True)
class Pending:
    """The open batches of one table, and the facts they were derived from."""

    batches: tuple[PlannedBatch, ...]
    assignment: Assignment
    schema: SourceSchema
    batch_columns: tuple[tuple[str, str], ...]
    done: int
    kept: tuple[str, ...]
    bad: tuple[BadFile, ...]
    incremental: Mapping[BatchKey, tuple[BatchKey, ...]]
    """Which incremental keys each batch holds rows of."""


def pending_batches(look: Look) -> Pending:
    """Compare what there is with what was done, batch by batch."""
    judged = _Judgement(look)
    judged.read_sources()
    keys = [*judged.assignment.batches, *judged.without_files()]
    judged.look_up_sources(keys)
    batches = [batch for key in keys if (batch := judged.planned(key)) is not None]
    checked = judged.without_edits(batches)
    return Pending(
        tuple(checked),
        judged.assignment,
        judged.schema,
        judged.batch_columns,
        len(judged.assignment.batches) - sum(1 for batch in checked if batch.key in judged.assignment.batches),
        tuple(judged.kept),
        judged.bad,
        judged.incremental_keys(),
    )


class _Judgement:
    """One pass over one table; each step adds what the next one needs."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.names = look.declared.batch_partition_columns
        in_path = set(look.sources.path_columns)
        wanted = dict.fromkeys((*self.names, *look.declared.incremental_keys))
        self.value_columns = tuple(name for name in wanted if name not in in_path)
        self.kept: list[str] = []
        self.contents: Mapping[str, FileContent] = {}
        self.problems: dict[str, str] = {}
        self.batch_columns: tuple[tuple[str, str], ...] = ()
        self.types: dict[str, str] = {}
        self.loaded = LoadedSources(look.ledger, look.declared.name, look.state)
        self.listed = frozenset(file.path for file in look.sources.files)
        layout = describe(without_level_order(layout_of(look.declared)))
        self.schema_hash = f"{look.mapping_hash}-{hashlib.sha256(layout.encode()).hexdigest()[:8]}"

    def read_sources(self) -> None:
        """Assign files to batches and learn the schema, reading only what is not known yet."""
        files = self.look.sources.files
        if self.value_columns:
            remembered = self.loaded.remembered(files, self.names)
            unknown = [file for file in files if file.path not in remembered]
            self._learn(unknown)
            self._assign(files, remembered)
            read_again = [file for file in self._files_of_open_batches() if file.path in remembered]
            if read_again:
                self._learn([*unknown, *read_again])
                self._assign(files, remembered)
            return
        kinds = path_column_types(files, self._known_types())
        self.batch_columns = tuple((name, kinds[name]) for name in self.names)
        self._assign(files, {})
        self._learn(self._files_of_open_batches())

    def _assign(self, files: Sequence[SourceFile], remembered: Mapping[str, Sequence[BatchKey]]) -> None:
        good = [file for file in files if file.path not in self.problems] if self.value_columns else files
        self.fingerprints: dict[BatchKey, str] = {}
        self.assignment = assign(good, self.batch_columns, self.value_columns, self.contents, remembered)

    def _files_of_open_batches(self) -> list[SourceFile]:
        batches = self.assignment.batches
        return list({file.path: file for key in batches if self._is_open(key) for file in batches[key]}.values())

    def _learn(self, files: Sequence[SourceFile]) -> None:
        self.contents = self.look.contents(files, self.value_columns)
        self.schema = self.look.infer(files, self.contents)
        self.problems = {path: content.problem for path, content in self.contents.items() if content.problem}
        self.problems |= dict(self.schema.unfit)
        types = {column.name: column.type for column in self.schema.columns}
        self.types = self._known_types() | path_column_types(self.look.sources.files, self._known_types()) | types
        self.batch_columns = tuple((name, self.types.get(name, "string")) for name in self.names)

    @property
    def bad(self) -> tuple[BadFile, ...]:
        """Files that could not be listed or read."""
        return (*self.look.sources.bad, *(BadFile(path, reason) for path, reason in sorted(self.problems.items())))

    def incremental_keys(self) -> dict[BatchKey, tuple[BatchKey, ...]]:
        """The incremental keys of every batch: parts of its own key, or what its files were seen to hold."""
        wanted = self.look.declared.incremental_keys
        if set(wanted) <= set(self.names):
            return {key: (key.narrowed_to(wanted),) for key in self.assignment.batches}
        extra = tuple((name, self.types.get(name, "string")) for name in wanted if name not in self.names)
        read = [file for file in self.look.sources.files if not self.value_columns or file.path in self.contents]
        good = [file for file in read if file.path not in self.problems]
        both = assign(good, (*self.batch_columns, *extra), self.value_columns, self.contents)
        found: dict[BatchKey, dict[BatchKey, None]] = {}
        for key, done in self.look.state.done.items():
            found[key] = dict.fromkeys(done.record.incremental_keys if done.record else ())
        for joint in both.batches:
            found.setdefault(joint.narrowed_to(self.names), {})[joint.narrowed_to(wanted)] = None
        return {key: tuple(keys) for key, keys in found.items()}

    def _known_types(self) -> dict[str, str]:
        table = {column.name: column.type for column in self.look.facts.schema} if self.look.facts else {}
        return table | declared_types(self.look.declared)

    def _is_open(self, key: BatchKey) -> bool:
        done = self.look.state.done.get(key)
        return (
            done is None
            or done.invalidated
            or done.stamp.schema_hash != self.schema_hash
            or self._has_other_files(key, done)
        )

    def _has_other_files(self, key: BatchKey, done: DoneBatch) -> bool:
        return done.stamp.fingerprint != self._fingerprint(key)

    def _fingerprint(self, key: BatchKey) -> str:
        if key not in self.fingerprints:
            self.fingerprints[key] = fingerprint_of(self.assignment.batches.get(key, ()))
        return self.fingerprints[key]

    def without_files(self) -> list[BatchKey]:
        """Loaded batches of which no source file is there any more."""
        gone = [key for key in self.look.state.done if key.columns == self.names and key not in self.assignment.batches]
        return sorted(gone, key=BatchKey.sort_key)

    def look_up_sources(self, keys: Iterable[BatchKey]) -> None:
        """Read at once what the batches with other files than before were loaded from."""
        done = self.look.state.done
        self.loaded.read(done[key] for key in keys if key in done and self._has_other_files(key, done[key]))

    def planned(self, key: BatchKey) -> PlannedBatch | None:
        """The batch as planned, or None when nothing has to be done for it."""
        files = self.assignment.batches.get(key, ())
        done = self.look.state.done.get(key)
        if done is None:
            failed = key in self.look.state.failed
            return self._load(key, Reason.FAILED_BEFORE if failed else Reason.NEW, SourceChanges())
        if not self._is_open(key):
            return None
        changes = SourceChanges()
        if self._has_other_files(key, done):
            changes = self.loaded.changes(done, files, self.listed)
        keeps = bool(changes.removed) or not (files or changes.changed)
        reason = self._reason(done, changes, keeps)
        if keeps and reason is not Reason.SOURCE_REMOVED:
            self.kept.append(_kept(key, changes, len(files)))
        if keeps and reason is Reason.LAYOUT_CHANGED:
            return self._from_table(done, Action.REWRITE, reason, SourceChanges())
        if files:
            return self._load(key, reason, changes) if reason else None
        if changes.changed or reason is Reason.SOURCE_REMOVED:
            return self._from_table(done, Action.REMOVE, reason or Reason.SOURCE_CHANGED, changes)
        return None

    def _reason(self, done: DoneBatch, changes: SourceChanges, keeps: bool) -> Reason | None:
        """`keeps` says that the table holds rows of source files that are gone."""
        if changes.added or changes.changed:
            return Reason.SOURCE_CHANGED
        # Where some of the listing could not be looked into, a missing file proves nothing.
        if keeps and self.look.declared.on_removed == "delete" and not self.look.sources.incomplete:
            return Reason.SOURCE_REMOVED
        if done.invalidated:
            return Reason.INVALIDATED
        lies_otherwise = _lie(done.stamp.schema_hash) != _lie(self.schema_hash)
        if _mapping(done.stamp.schema_hash) != _mapping(self.schema_hash):
            # Rows whose sources are gone cannot be read anew, but they can be laid out anew.
            return Reason.LAYOUT_CHANGED if keeps and lies_otherwise else Reason.SCHEMA_CHANGED
        return Reason.LAYOUT_CHANGED if lies_otherwise else None

    def _load(self, key: BatchKey, reason: Reason, changes: SourceChanges) -> PlannedBatch:
        files = self.assignment.batches[key]
        return PlannedBatch(
            key=key,
            action=Action.LOAD,
            reason=reason,
            files=len(files),
            size_bytes=sum(file.size_bytes for file in files),
            rows_estimate=None,
            fingerprint=self._fingerprint(key),
            schema_hash=self.schema_hash,
            changes=changes.described(),
            blocked=self._blocked([*(file.path for file in files), *changes.changed]),
            needs=PRUNE if changes.removed else "",
        )

    def _from_table(self, done: DoneBatch, action: Action, reason: Reason, changes: SourceChanges) -> PlannedBatch:
        """A batch whose sources are not read: its rows are still those that the old mapping gave."""
        return PlannedBatch(
            key=done.stamp.batch,
            action=action,
            reason=reason,
            files=0,
            size_bytes=done.stamp.size_bytes,
            rows_estimate=done.stamp.rows,
            fingerprint=done.stamp.fingerprint,
            schema_hash=f"{_mapping(done.stamp.schema_hash)}-{_lie(self.schema_hash)}",
            changes=changes.described(),
            blocked=self._blocked(changes.changed),
            needs=PRUNE if changes.removed or reason is Reason.SOURCE_REMOVED else "",
        )

    def _blocked(self, paths: Sequence[str]) -> str:
        """What is wrong with the first of these files that cannot be read."""
        return next((f"{path}: {self.problems[path]}" for path in paths if path in self.problems), "")

    def without_edits(self, batches: Sequence[PlannedBatch]) -> list[PlannedBatch]:
        """Batches whose rows somebody changed are left alone unless told otherwise."""
        facts, native = self.look.facts, self.look.native
        if native is None or facts is None or not facts.ancestry:
            return list(batches)
        keys = [
            batch.key
            for batch in batches
            if not batch.blocked and batch.action is not Action.REWRITE and self._columns_exist(facts)
        ]
        edited = edited_batches(native, facts.ancestry, keys, self.look.state) if keys else {}
        return [self._guarded(batch, edited) for batch in batches]

    def _columns_exist(self, facts: TableFacts) -> bool:
        held = {column.name for column in facts.schema}
        return all(name in held for name in self.names)

    def _guarded(self, batch: PlannedBatch, edited: Mapping[BatchKey, int | None]) -> PlannedBatch:
        if batch.key not in edited:
            return batch
        author = edited[batch.key]
        told = "a snapshot that has expired" if author is None else f"snapshot {author}"
        note = f"rows of this batch were changed by {told}, which was not an ingestion"
        if batch.reason is Reason.LAYOUT_CHANGED:
            # The rows that are there are kept: they are laid out anew from the table itself.
            return replace(batch, action=Action.REWRITE, changes=(*batch.changes, note))
        needs = f"{batch.needs} {OVERWRITE_EDITS}".strip()
        return replace(batch, needs=needs, changes=(*batch.changes, f"edited: {note}"))


def _mapping(schema_hash: str) -> str:
    """The part that tells how rows are read."""
    return schema_hash.rpartition("-")[0]


def _lie(schema_hash: str) -> str:
    """The part that tells how rows lie."""
    return schema_hash.rpartition("-")[2]


def _kept(key: BatchKey, changes: SourceChanges, files: int) -> str:
    if files:
        return f"{key}: {len(changes.removed)} of its source files are gone, their rows stay"
    return f"{key}: all its source files are gone, its rows stay"
