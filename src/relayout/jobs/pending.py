"""Which batches are open and why: the listing, the ledger and the table's history laid side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from relayout.config.model import Table
from relayout.ingest.batches import Assignment, SourceChanges, assign, compare_sources, only_touched
from relayout.ingest.plan import OVERWRITE_EDITS, PRUNE, Action, PlannedBatch, Reason
from relayout.ingest.schema import SourceSchema, path_column_types
from relayout.jobs.sources import Sources, declared_types
from relayout.ledger.records import BatchRecord, SourceStamp, State, fingerprint_of
from relayout.ledger.state import DoneBatch, LedgerState
from relayout.read.edits import edited_batches
from relayout.read.ledger import LedgerReader
from relayout.read.local_files import content_hash
from relayout.table.batches import BatchKey
from relayout.table.facts import TableFacts
from relayout.table.layouts import describe, layout_of
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
    batches = [batch for key in judged.assignment.batches if (batch := judged.planned(key)) is not None]
    batches += judged.removed()
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
        self.sources_of: dict[int, dict[BatchKey, tuple[SourceStamp, ...]]] = {}
        layout = describe(layout_of(look.declared))
        self.schema_hash = f"{look.mapping_hash}-{hashlib.sha256(layout.encode()).hexdigest()[:8]}"

    def read_sources(self) -> None:
        """Assign files to batches and learn the schema, reading only what is not known yet."""
        files = self.look.sources.files
        if self.value_columns:
            self._load_sources({done.snapshot_id for done in self.look.state.done.values()})
            remembered = self._remembered(files)
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
            or done.stamp.fingerprint != fingerprint_of(self.assignment.batches[key])
            or done.stamp.schema_hash != self.schema_hash
        )

    def planned(self, key: BatchKey) -> PlannedBatch | None:
        """The batch as planned, or None when nothing has to be done for it."""
        if not self._is_open(key):
            return None
        files = self.assignment.batches[key]
        done = self.look.state.done.get(key)
        reason, changes = self._reason(key, done, files)
        if reason is None:
            return None
        broken = [file.path for file in files if file.path in self.problems]
        needs = PRUNE if changes.removed and self.look.declared.on_removed == "keep" else ""
        if reason is Reason.SOURCE_REMOVED:
            needs = PRUNE
        return PlannedBatch(
            key=key,
            action=Action.LOAD,
            reason=reason,
            files=len(files),
            size_bytes=sum(file.size_bytes for file in files),
            rows_estimate=None,
            fingerprint=fingerprint_of(files),
            schema_hash=self.schema_hash,
            changes=changes.described(),
            blocked=f"{broken[0]}: {self.problems[broken[0]]}" if broken else "",
            needs=needs,
        )

    def _reason(
        self, key: BatchKey, done: DoneBatch | None, files: Sequence[SourceFile]
    ) -> tuple[Reason | None, SourceChanges]:
        nothing = SourceChanges()
        if done is None:
            failed = self.look.state.failed.get(key)
            return (Reason.FAILED_BEFORE if failed is not None else Reason.NEW), nothing
        changes = nothing
        if done.stamp.fingerprint != fingerprint_of(files):
            changes = self._changes(key, done, files)
            if changes.added or changes.changed:
                return Reason.SOURCE_CHANGED, changes
            if changes.removed and self.look.declared.on_removed == "delete":
                return Reason.SOURCE_REMOVED, changes
            if changes.removed:
                self.kept.append(f"{key}: {len(changes.removed)} of its source files are gone, their rows stay")
        if done.invalidated:
            return Reason.INVALIDATED, changes
        mapping, _, layout = done.stamp.schema_hash.rpartition("-")
        wanted, _, wanted_layout = self.schema_hash.rpartition("-")
        if mapping != wanted:
            return Reason.SCHEMA_CHANGED, changes
        return (Reason.LAYOUT_CHANGED if layout != wanted_layout else None), changes

    def _changes(self, key: BatchKey, done: DoneBatch, files: Sequence[SourceFile]) -> SourceChanges:
        self._load_sources({done.snapshot_id})
        loaded = self.sources_of[done.snapshot_id].get(key)
        if loaded is None:
            # The run that loaded it died before it wrote the ledger: which file changed cannot be told any more.
            return SourceChanges(changed=tuple(file.path for file in files))
        before = {stamp.path: stamp for stamp in loaded}
        touched = {
            file.path: content_hash(file.path)
            for file in files
            if file.path in before and only_touched(before[file.path], file) and not file.path.startswith("s3://")
        }
        return compare_sources(loaded, files, touched)

    def _load_sources(self, snapshot_ids: set[int]) -> None:
        missing = snapshot_ids - self.sources_of.keys()
        if not missing:
            return
        for number in missing:
            self.sources_of[number] = {}
        for record in self._records(missing):
            if record.sources is not None and record.snapshot_id is not None and record.state is State.DONE:
                self.sources_of[record.snapshot_id][record.batch] = record.sources

    def _records(self, snapshot_ids: set[int]) -> tuple[BatchRecord, ...]:
        return self.look.ledger.records_with_sources(self.look.declared.name, snapshot_ids)

    def _remembered(self, files: Sequence[SourceFile]) -> dict[str, list[BatchKey]]:
        """Batches of files that look as they did when they were loaded."""
        held: dict[str, list[BatchKey]] = {}
        stamps: dict[str, SourceStamp] = {}
        for done in self.look.state.done.values():
            for stamp in self.sources_of[done.snapshot_id].get(done.stamp.batch, ()):
                held.setdefault(stamp.path, []).append(done.stamp.batch)
                stamps[stamp.path] = stamp
        return {
            file.path: held[file.path]
            for file in files
            if file.path in stamps
            and (stamps[file.path].size_bytes, stamps[file.path].modified_ns, stamps[file.path].changed_ns)
            == (file.size_bytes, file.modified_ns, file.changed_ns)
            and stamps[file.path].etag == file.etag
        }

    def removed(self) -> list[PlannedBatch]:
        """Loaded batches that have no source file left."""
        gone = [
            done
            for key, done in self.look.state.done.items()
            if key.columns == self.names and key not in self.assignment.batches
        ]
        found = []
        for done in sorted(gone, key=lambda done: done.stamp.batch.sort_key()):
            key = done.stamp.batch
            if self.look.sources.incomplete or self.look.declared.on_removed == "keep":
                self.kept.append(f"{key}: all its source files are gone, its rows stay")
                if self._lies_otherwise(done):
                    found.append(self._from_table(key, done, Action.REWRITE, Reason.LAYOUT_CHANGED, ""))
                continue
            found.append(self._from_table(key, done, Action.REMOVE, Reason.SOURCE_REMOVED, PRUNE))
        return found

    def _lies_otherwise(self, done: DoneBatch) -> bool:
        return done.stamp.schema_hash.rpartition("-")[2] != self.schema_hash.rpartition("-")[2]

    def _from_table(self, key: BatchKey, done: DoneBatch, action: Action, reason: Reason, needs: str) -> PlannedBatch:
        return PlannedBatch(
            key=key,
            action=action,
            reason=reason,
            files=0,
            size_bytes=done.stamp.size_bytes,
            rows_estimate=done.stamp.rows,
            fingerprint=done.stamp.fingerprint,
            schema_hash=self.schema_hash,
            needs=needs,
        )

    def without_edits(self, batches: Sequence[PlannedBatch]) -> list[PlannedBatch]:
        """Batches whose rows somebody changed are left alone unless told otherwise."""
        facts, native = self.look.facts, self.look.native
        if native is None or facts is None or not facts.ancestry:
            return list(batches)
        since = {
            batch.key: done.snapshot_id if (done := self.look.state.done.get(batch.key)) else None
            for batch in batches
            if batch.runs and batch.action is not Action.REWRITE and self._columns_exist(facts)
        }
        if not since:
            return list(batches)
        edited = edited_batches(native, facts.ancestry, since, self.look.state.counted)
        return [self._guarded(batch, edited) for batch in batches]

    def _columns_exist(self, facts: TableFacts) -> bool:
        held = {column.name for column in facts.schema}
        return all(name in held for name in self.names)

    def _guarded(self, batch: PlannedBatch, edited: Mapping[BatchKey, int]) -> PlannedBatch:
        if batch.key not in edited:
            return batch
        note = f"rows of this batch were changed by snapshot {edited[batch.key]}, which was not an ingestion"
        if batch.reason is Reason.LAYOUT_CHANGED:
            # The rows that are there are kept: they are laid out anew from the table itself.
            return replace(batch, action=Action.REWRITE, changes=(*batch.changes, note))
        return replace(batch, needs=OVERWRITE_EDITS, changes=(*batch.changes, f"edited: {note}"))
