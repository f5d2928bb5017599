"""What done batches were loaded from, as the ledger holds it, against the files that are there now."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from relayout.ingest.batches import SourceChanges, compare_sources, only_touched
from relayout.ledger.records import SourceStamp, State
from relayout.ledger.state import DoneBatch, LedgerState
from relayout.read.ledger import LedgerReader
from relayout.read.local_files import content_hash
from relayout.table.batches import BatchKey
from relayout.table.sources import SourceFile


class LoadedSources:
    """Source files by batch; the long lists are only read for commits that somebody asks about."""

    def __init__(self, ledger: LedgerReader, table_name: str, state: LedgerState) -> None:
        self._ledger = ledger
        self._table_name = table_name
        self._state = state
        self._by_commit: dict[int, dict[BatchKey, tuple[SourceStamp, ...]]] = {}

    def read(self, batches: Iterable[DoneBatch]) -> None:
        """Fetch the lists of all these batches at once."""
        missing = {done.snapshot_id for done in batches} - self._by_commit.keys()
        if not missing:
            return
        self._by_commit |= {number: {} for number in missing}
        for record in self._ledger.records_with_sources(self._table_name, missing):
            if record.sources is not None and record.snapshot_id is not None and record.state is State.DONE:
                self._by_commit[record.snapshot_id][record.batch] = record.sources

    def of(self, done: DoneBatch) -> tuple[SourceStamp, ...] | None:
        """The files, or None where the run that loaded them died before it wrote the ledger."""
        self.read([done])
        return self._by_commit[done.snapshot_id].get(done.stamp.batch)

    def changes(self, done: DoneBatch, files: Sequence[SourceFile], listed: Container[str]) -> SourceChanges:
        """What became of the batch's files; where they are not known, all that are there now count as changed."""
        loaded = self.of(done)
        if loaded is None:
            return SourceChanges(changed=tuple(file.path for file in files))
        before = {stamp.path: stamp for stamp in loaded}
        touched = {
            file.path: content_hash(file.path)
            for file in files
            if file.path in before and only_touched(before[file.path], file) and not file.path.startswith("s3://")
        }
        return compare_sources(loaded, files, touched, listed)

    def remembered(self, files: Sequence[SourceFile], columns: tuple[str, ...]) -> dict[str, list[BatchKey]]:
        """Batches, by these columns, of the files that look as they did when all their batches were loaded."""
        self.read(self._state.done.values())
        present = {file.path: file for file in files}
        held: dict[str, list[BatchKey]] = {}
        wanted: dict[str, int] = {}
        for done in self._state.done.values():
            for stamp in (self.of(done) or ()) if done.stamp.batch.columns == columns else ():
                if stamp.path in present and _same(stamp, present[stamp.path]):
                    held.setdefault(stamp.path, []).append(done.stamp.batch)
                    wanted[stamp.path] = stamp.batches
        return {path: keys for path, keys in held.items() if len(keys) == wanted[path]}


def _same(stamp: SourceStamp, file: SourceFile) -> bool:
    return (stamp.size_bytes, stamp.modified_ns, stamp.changed_ns, stamp.etag) == (
        file.size_bytes,
        file.modified_ns,
        file.changed_ns,
        file.etag,
    )
