"""Making rows of an alternate visible, together with the account of what it now holds of its base.

Invariant: an alternate's account is never better than its rows. It is told from the very snapshot of the alternate that
the commit lands on; if that moved, it is told anew. Only CommitFailedException and ValidationException mean that
nothing landed; after anything else the history is searched, and no file that such a commit may use is ever deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.commit.batches import ATTEMPTS, DOUBT_SECONDS, conflict_filter
from relayout.commit.failpoints import passing
from relayout.commit.removals import removal_of
from relayout.commit.tables import roll_back_table
from relayout.config import Config
from relayout.errors import CommitConflict, CommitUnknown, EngineError, EnvironmentProblem
from relayout.kernels.outputs import FilesByBatch
from relayout.ledger.records import RUN_ID, BatchStamp, stamp_summary, stamps_in
from relayout.read.catalog import CatalogReader
from relayout.read.live_files import files_of_batches
from relayout.read.tables import facts_of
from relayout.spark.jvm.gateway import JavaFailure
from relayout.spark.jvm.iceberg import JavaTable, RowDelta, Summaries
from relayout.table.alternates import Account
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot, TableFacts
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

AccountAfter = Callable[[Sequence[Snapshot]], Account | None]
"""From the alternate's ancestry to the account that it has after the commit; None gives the commit up."""


@dataclass(frozen=True, slots=True)
class Relaid:
    """Rows of the base at one snapshot, laid out for an alternate: they take the place of `replaced`."""

    base_snapshot_id: int
    replaced: tuple[BatchKey, ...]
    files: FilesByBatch

    @property
    def stamps(self) -> Iterator[BatchStamp]:
        """One for each batch that has files now, or whose rows went."""
        gone = {key: () for key in self.replaced if key.items and key not in self.files}
        for key, files in {**self.files, **gone}.items():
            rows = sum(int(str(file["record-count"])) for file in files)
            size = sum(int(str(file["file-size-in-bytes"])) for file in files)
            yield BatchStamp(key, "", "", rows, len(files), size)


class AlternatePublisher:
    """Commits to one alternate; `in_doubt` says that a commit may have landed of which nobody knows."""

    def __init__(self, spark: SparkSession, config: Config, name: TableName, plan_id: str, run_id: str) -> None:
        self._spark = spark
        self._config = config
        self._name = name
        self._plan_id = plan_id
        self._run_id = run_id
        self._reader = CatalogReader(config)
        self.in_doubt = False

    def publish(self, relaid: Relaid, account_after: AccountAfter) -> Snapshot | None:
        """Our snapshot, or None when there is nothing right to say on top of what the alternate is by now."""
        last: Exception | None = None
        for attempt in range(ATTEMPTS):
            try:
                native, facts = self._look()
                landed = self._own(facts, relaid) if attempt else None
                if landed is None:
                    account = account_after(facts.ancestry)
                    if account is None and not self.in_doubt:
                        return None
                    landed = self._attempt(native, facts, relaid, account) if account else None
            except JavaFailure as failure:
                last = failure
                self.in_doubt |= not failure.is_a("CommitFailedException", "ValidationException")
                landed = self._search_own(relaid) if self.in_doubt else None
            except (EnvironmentProblem, EngineError) as silence:
                last, landed = silence, None
            if landed is not None:
                self.in_doubt = False
                return landed
            time.sleep(0.1 * 2**attempt)
        if self.in_doubt:
            raise CommitUnknown(
                f"nobody knows whether the commit to {self._name} landed: {last}",
                where=str(self._name),
                next="run `relayout apply` again when the catalog answers",
            ) from last
        raise CommitConflict(
            f"{ATTEMPTS} commits to {self._name} failed: {last}",
            where=str(self._name),
            next="run `relayout apply` again when the catalog answers and other writers are done",
        ) from last

    def roll_back(self, snapshot_id: int) -> None:
        """Make an older snapshot of the alternate the current one."""
        roll_back_table(self._spark, self._config, self._name, snapshot_id)

    def _attempt(self, native: Table, facts: TableFacts, relaid: Relaid, account: Account) -> Snapshot | None:
        keys = relaid.replaced
        removal = removal_of(self._spark, self._config, facts, files_of_batches(native, keys), keys, self._run_id)
        layout = self._name.table
        previous = next((one.snapshot_id for one in facts.ancestry if stamps_in(one.summary, layout)), None)
        summary = stamp_summary(self._plan_id, self._run_id, layout, relaid.stamps, previous) | account.summary()
        delta = RowDelta(
            base_snapshot_id=facts.current_snapshot_id,
            added_rows=[file for files in relaid.files.values() for file in files],
            removed_rows=removal.removed_rows,
            added_deletes=removal.added_deletes,
            removed_deletes=removal.removed_deletes,
            conflict_filter=conflict_filter(keys, facts),
            summary=summary,
        )
        passing("before-alternate-commit")
        self._java().commit_row_delta(delta, _only_on(facts.current_snapshot_id))
        passing("after-alternate-commit")
        self.in_doubt = True
        return self._search_own(relaid)

    def _search_own(self, relaid: Relaid) -> Snapshot | None:
        """Our snapshot, if history has it by now; a catalog that is silent is asked again."""
        for delay in DOUBT_SECONDS:
            time.sleep(delay)
            try:
                landed = self._own(self._look()[1], relaid)
            except EnvironmentProblem:
                continue
            if landed is not None:
                return landed
        return None

    def _own(self, facts: TableFacts, relaid: Relaid) -> Snapshot | None:
        wanted = {stamp.batch for stamp in relaid.stamps}
        for snapshot in facts.ancestry:
            if snapshot.summary.get(RUN_ID) != self._run_id:
                continue
            account = Account.from_summary(snapshot.summary)
            stamps = {stamp.batch for stamp in stamps_in(snapshot.summary, self._name.table)}
            if account and account.base_snapshot_id == relaid.base_snapshot_id and stamps == wanted:
                return snapshot
        return None

    def _java(self) -> JavaTable:
        return JavaTable(self._spark, self._name.spark_sql(self._config.catalog.name))

    def _look(self) -> tuple[Table, TableFacts]:
        native = self._reader.load(self._name)
        if native is None:
            raise CommitConflict(f"{self._name} was dropped meanwhile", next="run `relayout apply` again")
        return native, facts_of(native, self._name)


def _only_on(snapshot_id: int | None) -> Callable[[Summaries], str]:
    """A judge that lets the commit land on exactly this snapshot."""

    def judge(snapshots: Summaries) -> str:
        newest: tuple[int, Any] | None = next(snapshots, None)
        now = newest[0] if newest else None
        return "" if now == snapshot_id else "the alternate was changed meanwhile"

    return judge
