"""Which rows of an alternate are due, judged by both histories and, where somebody else wrote, by what they touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.alternates.freshness import REPLACE, changes_since, head_account
from relayout.alternates.registry import Found
from relayout.ledger.records import BASE_LAYOUT, stamps_in
from relayout.read.affected import affected_by
from relayout.read.tables import means_the_same
from relayout.table.alternates import Account
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot, TableFacts
from relayout.table.names import quote_spark
from relayout.table.scalars import plain
from relayout.table.types import sql_literal

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable
    from pyspark.sql import SparkSession

MOST_BATCHES = 256
"""When more batches than this are due, the whole alternate is laid out anew: one read, one commit."""

EVERYTHING = (BatchKey(),)


@dataclass(frozen=True, slots=True)
class Due:
    """Batches whose rows must be taken from a base snapshot again; none when only the account has to move on."""

    base_snapshot_id: int
    keys: tuple[BatchKey, ...]

    @property
    def everything(self) -> bool:
        return self.keys == EVERYTHING


def due_of(
    spark: SparkSession | None,
    full_name: str,
    native: NativeTable,
    base: TableFacts,
    found: Found,
    columns: Sequence[str],
) -> Due | None:
    """What the alternate lacks of the base's current snapshot; None when it lacks nothing.

    Without a session a change of somebody else's counts as one of every row.
    """
    if not base.ancestry:
        return None
    now = base.ancestry[0].snapshot_id
    account = head_account(found.facts.ancestry) if found.facts.ancestry else None
    if account is None or account.only:
        return Due(now, EVERYTHING)
    changes = changes_since(account.base_snapshot_id, base.ancestry)
    if changes is None:
        return Due(now, EVERYTHING)
    if not changes and not account.batches:
        return None
    return Due(now, _keys(spark, full_name, native, base, account, changes, columns))


def lagging(base: TableFacts, found: Found) -> Due | None:
    """Only the account has to move on: the base was rewritten since, and the history that proves it may be expired."""
    account = head_account(found.facts.ancestry) if found.facts.ancestry else None
    if account is None or not base.ancestry or account.base_snapshot_id == base.ancestry[0].snapshot_id:
        return None
    return Due(base.ancestry[0].snapshot_id, ())


def _keys(
    spark: SparkSession | None,
    full_name: str,
    native: NativeTable,
    base: TableFacts,
    account: Account,
    changes: Sequence[Snapshot],
    columns: Sequence[str],
) -> tuple[BatchKey, ...]:
    keys = set(account.batches)
    foreign = []
    for snapshot in changes:
        stamps = stamps_in(snapshot.summary, BASE_LAYOUT)
        keys |= {stamp.batch for stamp in stamps}
        if not stamps:
            foreign.append(snapshot)
    held = {column.name for column in base.schema}
    if not {name for key in keys for name in key.columns} <= held:
        return EVERYTHING
    if foreign and (spark is None or not set(columns) <= held):
        return EVERYTHING
    if foreign and spark is not None:
        affected = affected_by(native, foreign, columns)
        if affected.everything:
            return EVERYTHING
        keys |= affected.keys
        for snapshot_id, paths in affected.mixed.items():
            if native.metadata.snapshot_by_id(snapshot_id) is None or not means_the_same(native, snapshot_id):
                return EVERYTHING
            keys |= set(_batches_in(spark, full_name, snapshot_id, paths, base, columns))
    # The key without columns is every row, and so makes the others needless.
    if len(keys) > MOST_BATCHES or not all(key.items for key in keys):
        return EVERYTHING
    return tuple(sorted(keys, key=lambda key: (key.columns, key.sort_key())))


def _batches_in(
    spark: SparkSession,
    full_name: str,
    snapshot_id: int,
    paths: Iterable[str],
    base: TableFacts,
    columns: Sequence[str],
) -> list[BatchKey]:
    """The batches of which these files hold rows, read at a snapshot that has them."""
    wanted = ", ".join(sql_literal(path, "string", "spark") for path in sorted(paths))
    frame = spark.read.option("versionAsOf", str(snapshot_id)).table(full_name).where(f"_file IN ({wanted})")
    rows = frame.select(*(quote_spark(name) for name in columns)).distinct().toArrow()
    kinds = [base.type_of(name) for name in columns]
    return [
        BatchKey.of(columns, [plain(value, kind) for value, kind in zip(row.values(), kinds, strict=True)])
        for row in rows.to_pylist()
    ]


def content_of(ancestry: Sequence[Snapshot]) -> int | None:
    """The newest snapshot that changed rows; as long as it is the same, so are the rows."""
    return next((one.snapshot_id for one in ancestry if one.operation != REPLACE or _tells(one)), None)


def _tells(snapshot: Snapshot) -> bool:
    return Account.from_summary(snapshot.summary) is not None
