"""How fresh an alternate is for a base snapshot, from the two histories alone.

A `replace` moves rows to other files and changes none. An ingestion's stamp names the batches that changed. After
anything else every row of the base may be another, and of an alternate nothing can be said any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relayout.ledger.records import BASE_LAYOUT, stamps_in
from relayout.table.alternates import Account
from relayout.table.batches import BatchKey
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


def changes_since(snapshot_id: int, base: Sequence[Snapshot]) -> tuple[Snapshot, ...] | None:
    """What changed rows on top of a base snapshot, newest first; None when that is not in the ancestry.

    History may have been expired right behind the snapshot that is looked for.
    """
    newer = []
    for snapshot in base:
        if snapshot.snapshot_id == snapshot_id:
            break
        newer.append(snapshot)
        if snapshot.parent_id == snapshot_id:
            break
    else:
        return None
    return tuple(snapshot for snapshot in newer if snapshot.operation != REPLACE)


def still_holds(batch: BatchKey, since: int, base: Sequence[Snapshot]) -> bool:
    """Whether a batch is in the first snapshot of `base` what it was in an earlier one."""
    changes = changes_since(since, base)
    return changes is not None and _after(Account(since), changes).serves(batch)


def followed(
    alternate: Sequence[Snapshot], laid_out: Mapping[BatchKey, int], base: Sequence[Snapshot]
) -> Account | None:
    """The account after these batches were put into the alternate as base snapshots had them, told for `base`.

    A batch that changed since it was laid out is stale then, also where the alternate had newer rows of it. None where
    the alternate must be made anew.
    """
    account = standing(alternate, base)
    if account.only:
        return None
    held = [key for key, then in laid_out.items() if still_holds(key, then, base)]
    return account.without(key for key in laid_out if key not in held).having(held)


def carried(account: Account, base: Sequence[Snapshot]) -> Account | None:
    """The account as it is for the first snapshot of `base`, an ancestry; None when that does not come from its own."""
    changes = changes_since(account.base_snapshot_id, base)
    return None if changes is None else _after(account, changes).at(base[0].snapshot_id)


def standing(alternate: Sequence[Snapshot], base: Sequence[Snapshot]) -> Account:
    """What the newest snapshot of the alternate holds of the first one of `base`.

    An alternate without snapshots holds all rows of a base that had none: what is missing is what came since.
    """
    now = base[0].snapshot_id
    if not alternate:
        known = base[-1].parent_id is None
        changes = tuple(snapshot for snapshot in base if snapshot.operation != REPLACE)
        return _after(Account(now), changes).at(now) if known else Account.nothing(now)
    account = head_account(alternate)
    return (carried(account, base) if account else None) or Account.nothing(now)


def head_account(alternate: Sequence[Snapshot]) -> Account | None:
    """The account that the newest snapshot has by itself or as a `replace`; None after anybody else's change."""
    newest = next(accounts_in(alternate), None)
    return newest[1] if newest and newest[0] == alternate[0].snapshot_id else None


def _after(account: Account, changes: Sequence[Snapshot]) -> Account:
    for snapshot in changes:
        stamps = stamps_in(snapshot.summary, BASE_LAYOUT)
        if not stamps:
            return Account.nothing(account.base_snapshot_id)
        account = account.without(stamp.batch for stamp in stamps)
    return account


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
