"""How fresh an alternate is for a base snapshot, from the two histories alone.

A `replace` moves rows to other files and changes none. An ingestion's stamp names the batches that changed. After
anything else every row of the base may be another, and of an alternate nothing can be said any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relayout.ledger.records import BASE_LAYOUT, stamps_in
from relayout.table.alternates import Account
from relayout.table.facts import Snapshot

REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Fresh:
    """A snapshot of an alternate, and what it holds of the base snapshot that was asked about."""

    snapshot_id: int
    account: Account


def accounts_in(alternate: Sequence[Snapshot]) -> Iterator[tuple[int, Account]]:
    """Snapshot ids, newest first, with their accounts.

    A `replace` without an account holds what its parent held; a snapshot of anybody else makes an end only of itself
    and of what has no account above it.
    """
    replaced: list[int] = []
    for snapshot in alternate:
        account = Account.from_summary(snapshot.summary)
        if account is not None:
            yield from ((number, account) for number in [*replaced, snapshot.snapshot_id])
            replaced = []
        elif snapshot.operation == REPLACE:
            replaced.append(snapshot.snapshot_id)
        else:
            replaced = []


def carried(account: Account, base: Sequence[Snapshot]) -> Account | None:
    """The account as it is for the first snapshot of `base`, an ancestry; None when that does not come from its own.

    History may have been expired right behind the snapshot that the account was made for.
    """
    gone = []
    for snapshot in base:
        if snapshot.snapshot_id == account.base_snapshot_id:
            break
        gone.append(snapshot)
        if snapshot.parent_id == account.base_snapshot_id:
            break
    else:
        return None
    for snapshot in gone:
        if snapshot.operation == REPLACE:
            continue
        stamps = stamps_in(snapshot.summary, BASE_LAYOUT)
        if not stamps:
            return Account.nothing(base[0].snapshot_id)
        account = account.without(stamp.batch for stamp in stamps)
    return account.at(base[0].snapshot_id) if base else account


def freshest(alternate: Sequence[Snapshot], base: Sequence[Snapshot]) -> Fresh | None:
    """The newest snapshot of the alternate that is whole for the first snapshot of `base`, else the newest of use."""
    partly: Fresh | None = None
    for snapshot_id, account in accounts_in(alternate):
        told = carried(account, base)
        if told is None or told.empty:
            continue
        if told.whole:
            return Fresh(snapshot_id, told)
        partly = partly or Fresh(snapshot_id, told)
    return partly
