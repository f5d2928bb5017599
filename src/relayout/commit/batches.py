"""Making batches visible: one row delta that takes the batches' old rows out and puts the new ones in.

Invariant: a snapshot holds either none or all rows of a batch, and its summary says from which sources they came.
Only CommitFailedException and ValidationException mean that nothing landed; after anything else the table's history
is searched for our own stamp, and no file that such a commit may have used is ever deleted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.commit.failpoints import passing
from relayout.commit.removals import removal_of
from relayout.config import Config
from relayout.errors import CommitConflict, CommitUnknown
from relayout.ledger.records import (
    BASE_LAYOUT,
    BATCHES,
    LAYOUT,
    RUN_ID,
    BatchStamp,
    stamp_summary,
    stamps_in,
)
from relayout.read.catalog import CatalogReader
from relayout.read.edits import edited_batches
from relayout.read.live_files import files_of_batches
from relayout.read.tables import facts_of
from relayout.spark.jvm.gateway import JavaFailure
from relayout.spark.jvm.iceberg import JavaTable, RowDelta, Summaries
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot, TableFacts
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

ATTEMPTS = 20
LONGEST_PAUSE_SECONDS = 2.0
STAMPED_MEANWHILE = "another run committed meanwhile"
DOUBT_SECONDS = (0.0, 1.0, 3.0)
"""How long to look for a commit whose answer was lost before it is tried again."""


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch's stamp and the data files with its rows, as ContentFileParser reads them."""

    stamp: BatchStamp
    files: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """How a group of batches ended: in our snapshot, or in somebody else's from the same sources."""

    snapshot: Snapshot
    previous_stamp: int | None
    elsewhere: tuple[BatchKey, ...] = ()


class MovedMeanwhile(CommitConflict):
    """Somebody else loaded or changed some of these batches since they were planned; they must be planned again."""

    def __init__(self, keys: tuple[BatchKey, ...], how: str) -> None:
        super().__init__(f"{how}: " + ", ".join(str(key) for key in keys), next="run `relayout apply` again")
        self.keys = keys


class BatchPublisher:
    """Commits batches of one table, one group after the other.

    `planned_on` is the snapshot that the plan was made on: what others loaded after it is looked at before our own
    files go in.
    """

    def __init__(
        self, spark: SparkSession, config: Config, name: TableName, plan_id: str, run_id: str, planned_on: int | None
    ) -> None:
        self._spark = spark
        self._config = config
        self._name = name
        self._plan_id = plan_id
        self._run_id = run_id
        self._planned_on = planned_on
        self._reader = CatalogReader(config)
        self.in_doubt = False

    def publish(self, batches: Sequence[NewBatch], read_at: int | None = None) -> Committed:
        """Commit the group; raises MovedMeanwhile, CommitConflict or CommitUnknown when it did not land.

        Rows that were taken from the table itself name the snapshot they were read at: whatever touched these batches
        since then makes the commit fail, and so it is not tried twice.
        """
        last: JavaFailure | None = None
        for attempt in range(ATTEMPTS):
            native, facts = self._now()
            outcome = self._settled(facts, batches)
            if outcome is not None:
                return outcome
            if read_at is None:
                self._require_unedited(native, facts, batches)
            try:
                return self._attempt(native, facts, batches, read_at)
            except JavaFailure as failure:
                last = failure
                if (
                    read_at is not None
                    and failure.is_a("ValidationException")
                    and STAMPED_MEANWHILE not in str(failure)
                ):
                    raise CommitConflict(
                        f"rows of {self._name} changed while they were laid out anew: {failure.message}",
                        where=str(self._name),
                        next="run `relayout apply` again",
                    ) from failure
                if failure.is_a("CommitFailedException", "ValidationException"):
                    # Two runs that commit in turn must not keep meeting at the same moment.
                    time.sleep(random.uniform(0.05, min(LONGEST_PAUSE_SECONDS, 0.1 * 2**attempt)))
                    continue
                self.in_doubt = True
                landed = self._search_own(batches)
                if landed is not None:
                    return landed
        if self.in_doubt:
            raise CommitUnknown(
                f"nobody knows whether the commit to {self._name} landed: {last}",
                where=str(self._name),
                next="run `relayout apply` again when the catalog answers; it looks for this commit first",
            ) from last
        raise CommitConflict(
            f"{ATTEMPTS} commits to {self._name} lost against other writers: {last}",
            where=str(self._name),
            next="run `relayout apply` again when the other writers are done",
        ) from last

    def _settled(self, facts: TableFacts, batches: Sequence[NewBatch]) -> Committed | None:
        """What newer history already says of these batches: ours landed after all, or others did the same work."""
        newer = self._since_plan(facts)
        wanted = {batch.stamp.batch: batch.stamp.fingerprint for batch in batches}
        found: dict[BatchKey, tuple[Snapshot, BatchStamp]] = {}
        for snapshot in newer:
            for stamp in stamps_in(snapshot.summary, BASE_LAYOUT):
                if stamp.batch in wanted and stamp.batch not in found:
                    found[stamp.batch] = (snapshot, stamp)
        if not found:
            return None
        own = [snapshot for snapshot, _ in found.values() if snapshot.summary.get(RUN_ID) == self._run_id]
        if own and len(found) == len(wanted):
            return Committed(own[0], _previous_of(own[0]))
        different = tuple(key for key, (_, stamp) in found.items() if stamp.fingerprint != wanted[key])
        if different or len(found) < len(wanted):
            raise MovedMeanwhile(different or tuple(found), "loaded by another run meanwhile")
        newest = next(iter(found.values()))[0]
        return Committed(newest, _previous_of(newest), elsewhere=tuple(found))

    def _since_plan(self, facts: TableFacts) -> list[Snapshot]:
        newer: list[Snapshot] = []
        for snapshot in facts.ancestry:
            if snapshot.snapshot_id == self._planned_on:
                return newer
            newer.append(snapshot)
        if self._planned_on is not None:
            raise CommitConflict(
                f"{self._name} was rolled back, or its history expired, since it was planned",
                where=str(self._name),
                next="run `relayout apply` again",
            )
        return newer

    def _require_unedited(self, native: Table, facts: TableFacts, batches: Sequence[NewBatch]) -> None:
        """Rows that somebody changed after the plan was made are not replaced before a plan has shown them.

        What lands after these facts were read is caught by the commit's own validation.
        """
        known = facts.ancestry[: len(self._since_plan(facts)) + 1]
        since = {batch.stamp.batch: self._planned_on for batch in batches}
        edited = edited_batches(native, known, since, frozenset())
        if edited:
            raise MovedMeanwhile(tuple(edited), "rows were changed by somebody else meanwhile")

    def _attempt(self, native: Table, facts: TableFacts, batches: Sequence[NewBatch], read_at: int | None) -> Committed:
        keys = [batch.stamp.batch for batch in batches]
        affected = files_of_batches(native, keys)
        removal = removal_of(self._spark, self._config, facts, affected, keys, self._run_id)
        previous = next(
            (snapshot.snapshot_id for snapshot in facts.ancestry if stamps_in(snapshot.summary, BASE_LAYOUT)), None
        )
        summary = stamp_summary(self._plan_id, self._run_id, BASE_LAYOUT, [batch.stamp for batch in batches], previous)
        delta = RowDelta(
            base_snapshot_id=facts.current_snapshot_id if read_at is None else read_at,
            added_rows=[file for batch in batches for file in batch.files],
            removed_rows=removal.removed_rows,
            added_deletes=removal.added_deletes,
            removed_deletes=removal.removed_deletes,
            conflict_filter=conflict_filter(keys, facts),
            summary=summary,
        )
        passing("before-commit")
        self._commit(delta, facts.current_snapshot_id)
        passing("after-commit")
        landed = self._search_own(batches)
        if landed is None:
            raise CommitUnknown(
                f"the commit to {self._name} was accepted but is not in its history",
                where=str(self._name),
                next="somebody may have rolled the table back at this moment; run `relayout plan`",
            )
        return landed

    def _commit(self, delta: RowDelta, base: int | None) -> None:
        """Commit on top of snapshots that hold no stamp we do not know; ours points to the newest one before it."""

        def judge(snapshots: Summaries) -> str:
            for snapshot_id, entry in snapshots:
                if snapshot_id == base:
                    return ""
                if entry(BATCHES) and entry(LAYOUT) == BASE_LAYOUT:
                    return STAMPED_MEANWHILE
            return "" if base is None else "the table was rolled back meanwhile"

        table = JavaTable(self._spark, self._name.spark_sql(self._config.catalog.name))
        table.commit_row_delta(delta, judge)

    def _search_own(self, batches: Sequence[NewBatch]) -> Committed | None:
        """The snapshot with our run id and these batches, if history has it by now."""
        wanted = {batch.stamp.batch for batch in batches}
        for delay in DOUBT_SECONDS:
            time.sleep(delay)
            for snapshot in self._now()[1].ancestry:
                if snapshot.summary.get(RUN_ID) == self._run_id:
                    stamps = stamps_in(snapshot.summary, BASE_LAYOUT)
                    if wanted <= {stamp.batch for stamp in stamps}:
                        return Committed(snapshot, _previous_of(snapshot))
        return None

    def _now(self) -> tuple[Table, TableFacts]:
        native = self._reader.load(self._name)
        if native is None:
            raise CommitConflict(f"{self._name} was dropped meanwhile", next="run `relayout apply` again")
        return native, facts_of(native, self._name)


def _previous_of(snapshot: Snapshot) -> int | None:
    text = snapshot.summary.get("relayout.previous-stamp", "")
    return int(text) if text else None


def conflict_filter(keys: Sequence[BatchKey], facts: TableFacts) -> Mapping[str, Any] | bool:
    """The rows of the batches as an expression in Iceberg's JSON form; `True` stands for every row."""
    combined: Mapping[str, Any] | bool | None = None
    for key in keys:
        rows: Mapping[str, Any] | bool = True
        for name, value in key.items:
            test: Mapping[str, Any]
            if value is None:
                test = {"type": "is-null", "term": name}
            else:
                text = _json_value(value, facts.type_of(name))
                test = {"type": "eq", "term": name, "value": text}
            rows = test if rows is True else {"type": "and", "left": rows, "right": test}
        if rows is True:
            return True
        combined = rows if combined is None else {"type": "or", "left": combined, "right": rows}
    return True if combined is None else combined


def _json_value(value: object, kind: str) -> object:
    if isinstance(value, str) and kind.startswith("timestamp"):
        return value.replace(" ", "T")
    return value
