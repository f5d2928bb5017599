"""Making rewritten files visible: groups of old files go, new ones with the same rows come, in one snapshot.

Invariant: whatever others did meanwhile stays true. A delete by position makes its group a conflict; a delete by key
still reaches the new files, because they keep the age of the rows; where files move to another partition spec it would
not, and so it makes the whole commit a conflict. After a doubtful failure nothing is ever deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.commit.batches import ATTEMPTS, DOUBT_SECONDS
from relayout.commit.failpoints import passing
from relayout.config import Config
from relayout.errors import CommitConflict, CommitUnknown, EnvironmentProblem
from relayout.ledger.records import PLAN_ID, RUN_ID
from relayout.read.catalog import CatalogReader
from relayout.read.edits import changed_files
from relayout.read.manifests import DATA, EQUALITY_DELETES, POSITION_DELETES, Entry, live_entries
from relayout.read.tables import facts_of
from relayout.spark.jvm.gateway import JavaFailure
from relayout.spark.jvm.iceberg import JavaTable, Rewrite, Summaries
from relayout.table.facts import Snapshot
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

REWRITE_NUMBER = "relayout.rewrite"
"""Counts the commits of one run, so that each can be found again by itself."""

ADDED_KEY_DELETES = "added-equality-delete-files"
ADDED_DELETE_FILES = "added-delete-files"
ADDED_BY_POSITION = ("added-position-delete-files", "added-dvs")
TOTAL_DELETE_FILES = "total-delete-files"


@dataclass(frozen=True, slots=True)
class Replacement:
    """One rewritten group: the data files that go, the deletes that concern nothing else, the files that come."""

    group_id: int
    removed: tuple[Mapping[str, Any], ...]
    removed_deletes: tuple[Mapping[str, Any], ...]
    added: tuple[Mapping[str, Any], ...]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(str(file["file-path"]) for file in self.removed)


@dataclass(frozen=True, slots=True)
class RewriteBase:
    """What the groups were planned and read at; `moves` says that rows change their partition spec."""

    snapshot_id: int
    sequence_number: int
    moves: bool


@dataclass(frozen=True, slots=True)
class Landed:
    """The snapshot that holds our groups, and the groups that somebody else's changes kept out of it."""

    snapshot_id: int | None
    groups: tuple[Replacement, ...]
    conflicts: tuple[Replacement, ...]


class RewritePublisher:
    """Commits groups of one table; each call is a snapshot of its own."""

    def __init__(self, spark: SparkSession, config: Config, name: TableName, plan_id: str, run_id: str) -> None:
        self._spark = spark
        self._config = config
        self._name = name
        self._plan_id = plan_id
        self._run_id = run_id
        self._reader = CatalogReader(config)
        self._number = 0

    def publish(self, groups: Sequence[Replacement], base: RewriteBase) -> Landed:
        """Commit what does not conflict; raises CommitUnknown when nobody knows whether it landed."""
        self._number += 1
        waiting = list(groups)
        conflicts: list[Replacement] = []
        last: Exception | None = None
        in_doubt = False
        for attempt in range(ATTEMPTS):
            if not waiting:
                return Landed(None, (), tuple(conflicts))
            try:
                snapshot_id = self._attempt(waiting, base)
            except JavaFailure as failure:
                last = failure
                if in_doubt and (found := self._own_commit()) is not None:
                    return Landed(found, tuple(waiting), tuple(conflicts))
                if failure.is_a("ValidationException"):
                    native = self._load()
                    ancestry = facts_of(native, self._name).ancestry
                    if (found := self._own_in(ancestry)) is not None:
                        # Some catalogs tell a conflict of a commit that landed: it is in conflict with itself.
                        return Landed(found, tuple(waiting), tuple(conflicts))
                    met = _conflicting(native, ancestry, waiting, base)
                    conflicts += met
                    waiting = [group for group in waiting if group not in met]
                    continue
                if not failure.is_a("CommitFailedException"):
                    in_doubt = True
                    if (found := self._own_commit()) is not None:
                        return Landed(found, tuple(waiting), tuple(conflicts))
            else:
                return Landed(snapshot_id, tuple(waiting), tuple(conflicts))
            time.sleep(0.1 * 2**attempt)
        if in_doubt:
            raise CommitUnknown(
                f"nobody knows whether the commit to {self._name} landed: {last}",
                where=str(self._name),
                next="run the same command again when the catalog answers; what has landed is not done twice",
            ) from last
        raise CommitConflict(
            f"{ATTEMPTS} commits to {self._name} failed: {last}",
            where=str(self._name),
            next="run the same command again when other writers are done",
        ) from last

    def _attempt(self, groups: Sequence[Replacement], base: RewriteBase) -> int:
        rewrite = Rewrite(
            base_snapshot_id=base.snapshot_id,
            data_sequence_number=base.sequence_number,
            removed_rows=[file for group in groups for file in group.removed],
            added_rows=[file for group in groups for file in group.added],
            removed_deletes=_each_once(file for group in groups for file in group.removed_deletes),
            summary={PLAN_ID: self._plan_id, RUN_ID: self._run_id, REWRITE_NUMBER: str(self._number)},
        )
        passing("before-commit")
        table = JavaTable(self._spark, self._name.spark_sql(self._config.catalog.name))
        table.commit_rewrite(rewrite, lambda snapshots: self._verdict(snapshots, base))
        passing("after-commit")
        found = self._own_commit()
        if found is None:
            raise CommitUnknown(
                f"the commit to {self._name} was accepted but is not in its history",
                where=str(self._name),
                next="somebody may have rolled the table back at this moment; run the same command again",
            )
        return found

    def _verdict(self, snapshots: Summaries, base: RewriteBase) -> str:
        for snapshot_id, entry in snapshots:
            if snapshot_id == base.snapshot_id:
                return ""
            if entry(RUN_ID) == self._run_id and entry(REWRITE_NUMBER) == str(self._number):
                return "this commit has landed already"
            if base.moves and may_delete_by_key(entry):
                return "rows were deleted by key meanwhile"
        return "the table was rolled back meanwhile"

    def _own_commit(self) -> int | None:
        for delay in DOUBT_SECONDS:
            time.sleep(delay)
            try:
                ancestry = facts_of(self._load(), self._name).ancestry
            except EnvironmentProblem:
                continue
            if (found := self._own_in(ancestry)) is not None:
                return found
        return None

    def _own_in(self, ancestry: Iterable[Snapshot]) -> int | None:
        for snapshot in ancestry:
            told = snapshot.summary
            if told.get(RUN_ID) == self._run_id and told.get(REWRITE_NUMBER) == str(self._number):
                return snapshot.snapshot_id
        return None

    def _load(self) -> Table:
        native = self._reader.load(self._name)
        if native is None:
            raise CommitConflict(
                f"{self._name} was dropped meanwhile", where=str(self._name), next="nothing is left to do"
            )
        return native


def _conflicting(
    native: Table, ancestry: Iterable[Snapshot], groups: Sequence[Replacement], base: RewriteBase
) -> list[Replacement]:
    """Groups that cannot land any more; all of them where the reason is not in single files."""
    newer: list[int] = []
    for snapshot in ancestry:
        if snapshot.snapshot_id == base.snapshot_id:
            break
        newer.append(snapshot.snapshot_id)
    else:
        return list(groups)
    current = native.current_snapshot()
    manifests = current.manifests(native.io) if current else []
    data = [manifest for manifest in manifests if manifest.content == DATA]
    live = {entry.file.file_path for entry in live_entries(data, native.io)}
    changed = [entry for number in newer for entry in changed_files(native, number)]
    deletes = [entry for entry in changed if int(entry.file.content) != DATA]
    met = [group for group in groups if not group.paths <= live or any(_reaches(entry, group) for entry in deletes)]
    keys = any(int(entry.file.content) == EQUALITY_DELETES for entry in deletes)
    return list(groups) if not met or (base.moves and keys) else met


def may_delete_by_key(entry: Callable[[str], str | None]) -> bool:
    """Whether a snapshot's summary leaves open that it deletes by key; writers that count nothing leave it open."""
    if int(entry(ADDED_KEY_DELETES) or 0) > 0 or entry(TOTAL_DELETE_FILES) is None:
        return True
    by_position = sum(int(entry(name) or 0) for name in ADDED_BY_POSITION)
    return int(entry(ADDED_DELETE_FILES) or 0) > by_position


def _reaches(delete: Entry, group: Replacement) -> bool:
    if int(delete.file.content) != POSITION_DELETES:
        return False
    if delete.only_data_file:
        return delete.only_data_file in group.paths
    return any(file["spec-id"] == delete.file.spec_id for file in group.removed)


def _each_once(files: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({(str(file["file-path"]), file.get("content-offset")): file for file in files}.values())
