"""Making batches visible: one row delta that takes the batches' old rows out and puts the new ones in.

Invariant: a snapshot holds either none or all rows of a batch, and its summary says from which sources they came.
Only CommitFailedException and ValidationException mean that nothing landed; after anything else the table's history
is searched for our own stamp, and no file that such a commit may have used is ever deleted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.commit.failpoints import passing
from relayout.commit.left_files import delete_left_files
from relayout.commit.removals import removal_of
from relayout.commit.rivals import Committed, own_commit, settled, snapshots_since
from relayout.config import Config
from relayout.errors import CommitConflict, CommitUnknown, EngineError, EnvironmentProblem, RelayoutError
from relayout.ledger.records import BASE_LAYOUT, BATCHES, LAYOUT, BatchStamp, stamp_summary, stamps_in
from relayout.read.catalog import CatalogReader
from relayout.read.live_files import files_of_batches
from relayout.read.tables import facts_of
from relayout.spark.jvm.gateway import JavaFailure
from relayout.spark.jvm.iceberg import JavaTable, RowDelta, Summaries
from relayout.table.batches import BatchKey, Scalar
from relayout.table.facts import TableFacts
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

ATTEMPTS = 6
LARGEST = {"float": 3.4028234663852886e38, "double": 1.7976931348623157e308}

DOUBT_SECONDS = (0.0, 1.0, 3.0)
"""How long to look for a commit whose answer was lost before it is tried again."""


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch's stamp and the data files with its rows, as ContentFileParser reads them."""

    stamp: BatchStamp
    files: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class PlannedOn:
    """What the plan knew of the table: its snapshot, and the newest stamp, which expiry may have taken meanwhile."""

    snapshot_id: int | None
    newest_stamp: int | None


class BatchPublisher:
    """Commits batches of one table, one group after the other.

    What others did after the plan was made is looked at before our own files go in. `in_doubt` are batches of which
    nobody knows whether they landed.
    """

    def __init__(
        self, spark: SparkSession, config: Config, name: TableName, plan_id: str, run_id: str, planned_on: PlannedOn
    ) -> None:
        self._spark = spark
        self._config = config
        self._name = name
        self._plan_id = plan_id
        self._run_id = run_id
        self._planned_on = planned_on
        self._reader = CatalogReader(config)
        self._written_deletes: list[str] = []
        self._spare_deletes: list[str] = []
        self.in_doubt: set[BatchKey] = set()

    def publish(self, batches: Sequence[NewBatch], read_at: int | None = None) -> Committed:
        """Commit the group; raises MovedMeanwhile, CommitConflict or CommitUnknown when it did not land.

        Rows that were taken from the table itself name the snapshot they were read at: whatever touched these batches
        since then makes the commit fail, and so it is not tried twice.
        """
        keys = {batch.stamp.batch for batch in batches}
        self._written_deletes, self._spare_deletes = [], []
        try:
            committed = self._published(batches, keys, read_at)
        except RelayoutError:
            # Not after an interruption: the JVM may be committing still.
            self._drop_spare_deletes(keys)
            raise
        self._drop_spare_deletes(keys)
        return committed

    def _published(self, batches: Sequence[NewBatch], keys: set[BatchKey], read_at: int | None) -> Committed:
        last: Exception | None = None
        for attempt in range(ATTEMPTS):
            landed: Committed | None = None
            try:
                # What others did is judged by the same look that the commit builds on: nothing can land in between.
                look = self._look()
                landed = self._settled(batches, *look) or self._attempt(batches, *look, read_at)
            except JavaFailure as failure:
                last = failure
                self._spare_deletes += self._written_deletes
                landed = self._after_failure(failure, keys, read_at)
            except (EnvironmentProblem, EngineError) as silence:
                last = silence
            if landed is not None:
                self.in_doubt -= keys
                return landed
            time.sleep(0.1 * 2**attempt)
        if self.in_doubt & keys:
            raise CommitUnknown(
                f"nobody knows whether the commit to {self._name} landed: {last}",
                where=str(self._name),
                next="run `relayout apply` again when the catalog answers; it looks for this commit first",
            ) from last
        raise CommitConflict(
            f"{ATTEMPTS} commits to {self._name} failed: {last}",
            where=str(self._name),
            next="run `relayout apply` again when the catalog answers and other writers are done",
        ) from last

    def _after_failure(self, failure: JavaFailure, keys: set[BatchKey], read_at: int | None) -> Committed | None:
        """Our commit, if it landed although its answer was a failure; None when it may be tried again."""
        if read_at is not None and failure.is_a("ValidationException"):
            raise CommitConflict(
                f"rows of {self._name} changed while they were laid out anew: {failure.message}",
                where=str(self._name),
                next="run `relayout apply` again",
            ) from failure
        if failure.is_a("CommitFailedException", "ValidationException"):
            return None
        self.in_doubt |= keys
        return self._search_own(keys)

    def _drop_spare_deletes(self, keys: set[BatchKey]) -> None:
        """Every attempt finds positions anew; what no snapshot uses of the earlier ones is taken away."""
        if self.in_doubt & keys or not self._spare_deletes:
            return
        # A catalog that is silent now leaves them to the removal of orphan files.
        with suppress(EnvironmentProblem, CommitConflict):
            delete_left_files(self._look()[0], self._spare_deletes, dict(self._config.catalog.properties))

    def _settled(self, batches: Sequence[NewBatch], native: Table, facts: TableFacts) -> Committed | None:
        newer = snapshots_since(facts.ancestry, self._planned_on.snapshot_id)
        wanted = {batch.stamp.batch: batch.stamp.fingerprint for batch in batches}
        return settled(native, newer, wanted, self._run_id)

    def _attempt(self, batches: Sequence[NewBatch], native: Table, facts: TableFacts, read_at: int | None) -> Committed:
        keys = [batch.stamp.batch for batch in batches]
        affected = files_of_batches(native, keys)
        removal = removal_of(self._spark, self._config, facts, affected, keys, self._run_id)
        previous = next(
            (snapshot.snapshot_id for snapshot in facts.ancestry if stamps_in(snapshot.summary, BASE_LAYOUT)),
            self._planned_on.newest_stamp,
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
        self._written_deletes = [str(file["file-path"]) for file in removal.added_deletes]
        self._commit(delta, keys, facts.current_snapshot_id)
        passing("after-commit")
        self.in_doubt |= set(keys)
        landed = self._search_own(set(keys))
        if landed is None:
            raise CommitUnknown(
                f"the commit to {self._name} was accepted but is not in its history",
                where=str(self._name),
                next="somebody may have rolled the table back at this moment; run `relayout plan`",
            )
        return landed

    def _commit(self, delta: RowDelta, keys: Sequence[BatchKey], base: int | None) -> None:
        wanted = set(keys)

        def judge(snapshots: Summaries) -> str:
            for snapshot_id, entry in snapshots:
                if snapshot_id == base:
                    return ""
                text = entry(BATCHES)
                if text and entry(LAYOUT) == BASE_LAYOUT:
                    stamps = stamps_in({LAYOUT: BASE_LAYOUT, BATCHES: text}, BASE_LAYOUT)
                    again = [str(stamp.batch) for stamp in stamps if stamp.batch in wanted]
                    if again:
                        return "loaded meanwhile: " + ", ".join(again)
            return "" if base is None else "the table was rolled back meanwhile"

        table = JavaTable(self._spark, self._name.spark_sql(self._config.catalog.name))
        table.commit_row_delta(delta, judge)

    def _search_own(self, keys: set[BatchKey]) -> Committed | None:
        """Our snapshot with these batches, if history has it by now; a catalog that is silent is asked again."""
        for delay in DOUBT_SECONDS:
            time.sleep(delay)
            try:
                landed = own_commit(self._look()[1].ancestry, self._run_id, keys)
            except EnvironmentProblem:
                continue
            if landed is not None:
                return landed
        return None

    def _look(self) -> tuple[Table, TableFacts]:
        """The table as it is now."""
        native = self._reader.load(self._name)
        if native is None:
            raise CommitConflict(f"{self._name} was dropped meanwhile", next="run `relayout apply` again")
        return native, facts_of(native, self._name)


def conflict_filter(keys: Sequence[BatchKey], facts: TableFacts) -> Mapping[str, Any] | bool:
    """The rows of the batches as an expression in Iceberg's JSON form; `True` stands for every row."""
    combined: Mapping[str, Any] | bool | None = None
    for key in keys:
        rows: Mapping[str, Any] | bool = True
        for name, value in key.items:
            test = _test_of(name, value, facts.type_of(name))
            rows = test if rows is True else {"type": "and", "left": rows, "right": test}
        if rows is True:
            return True
        combined = rows if combined is None else {"type": "or", "left": combined, "right": rows}
    return True if combined is None else combined


def _test_of(name: str, value: Scalar, kind: str) -> Mapping[str, Any]:
    if value is None:
        return {"type": "is-null", "term": name}
    if kind in LARGEST and isinstance(value, str):
        # JSON has no numbers for these: infinite is what lies beyond the last one.
        if value == "NaN":
            return {"type": "is-nan", "term": name}
        sign = -1 if value.startswith("-") else 1
        return {"type": "gt" if sign > 0 else "lt", "term": name, "value": sign * LARGEST[kind]}
    if isinstance(value, str) and kind.startswith("timestamp"):
        return {"type": "eq", "term": name, "value": value.replace(" ", "T")}
    return {"type": "eq", "term": name, "value": value}
