"""What the tables of alternates say about themselves: whose they are, and which rows of the base they hold.

An alternate is an Iceberg table beside its base. Its properties say whose it is; the summary of each of its snapshots
accounts for the base: up to which base snapshot, and for which batches. The account stands in the commit that holds
the rows, so that it can neither be lost nor lie. How it is read is told in `alternates/freshness.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from relayout.table.batches import BatchKey

ALTERNATES = "relayout.alternates"
"""Property of a base: the names of its alternates' tables with commas between; only an index, never the truth."""

ALTERNATE_OF = "relayout.alternate-of"
ALTERNATE_NAME = "relayout.alternate-name"
ALTERNATE_DECLARATION = "relayout.alternate-declaration"
"""Properties of an alternate: uuid of its base, declared name (a description only), layout as canonical JSON."""

BASE_FIELDS = "relayout.base-fields"
"""Property of an alternate: JSON of the base's field ids by full name, nested ones too, as the rows were taken.

A column may stand in for the base's only while all its ids are the same: a column that was renamed, and another that
took its name, make no snapshot.
"""

BASE_SNAPSHOT = "relayout.base-snapshot"
STALE_BATCHES = "relayout.stale-batches"
FRESH_BATCHES = "relayout.fresh-batches"
"""Summary entries of an alternate's snapshot: the base snapshot it accounts for, and either the batches that are not
those of that snapshot, or the only ones that are. Both are JSON lists of batch keys."""

ALL_STALE = "*"
"""In place of a list of stale batches: nothing may be served."""

MOST_HYBRID_BATCHES = 64
"""With more batches on the list than this, a query is not served from both layouts at once."""


@dataclass(frozen=True, slots=True)
class Account:
    """What an alternate holds of one base snapshot: everything except `batches`, or, if `only`, nothing else.

    Batches are sorted and no two are equal; their columns may differ. Rows belong to a batch by null-safe equality.
    """

    base_snapshot_id: int
    batches: tuple[BatchKey, ...] = ()
    only: bool = False

    @classmethod
    def nothing(cls, base_snapshot_id: int) -> Account:
        return cls(base_snapshot_id, (), only=True)

    @property
    def whole(self) -> bool:
        return not self.only and not self.batches

    @property
    def empty(self) -> bool:
        return self.only and not self.batches

    def serves(self, key: BatchKey) -> bool:
        """Whether all rows of the batch are those of the base."""
        if self.only:
            return any(covers(fresh, key) for fresh in self.batches)
        return not any(overlap(stale, key) for stale in self.batches)

    def at(self, base_snapshot_id: int) -> Account:
        """The same batches, told of another base snapshot."""
        return replace(self, base_snapshot_id=base_snapshot_id)

    def without(self, keys: Iterable[BatchKey]) -> Account:
        """These batches changed in the base."""
        gone = list(keys)
        if not all(key.items for key in gone):
            return Account.nothing(self.base_snapshot_id)
        if self.only:
            return self._of(key for key in self.batches if not any(overlap(key, other) for other in gone))
        return self._of([*self.batches, *gone])

    def having(self, keys: Iterable[BatchKey]) -> Account:
        """These batches were laid out anew from the base."""
        new = list(keys)
        if not all(key.items for key in new):
            return Account(self.base_snapshot_id)
        if self.only:
            return self._of([*self.batches, *new])
        return self._of(key for key in self.batches if not any(covers(other, key) for other in new))

    def _of(self, keys: Iterable[BatchKey]) -> Account:
        return replace(self, batches=tuple(sorted(dict.fromkeys(keys), key=_order)))

    def summary(self) -> dict[str, str]:
        """Entries for the summary of the alternate's snapshot."""
        told = json.dumps([dict(key.items) for key in self.batches], ensure_ascii=False, separators=(",", ":"))
        if self.empty:
            told = ALL_STALE
        kind = FRESH_BATCHES if self.only and self.batches else STALE_BATCHES
        return {BASE_SNAPSHOT: str(self.base_snapshot_id), kind: told}

    @classmethod
    def from_summary(cls, summary: Mapping[str, str]) -> Account | None:
        """The account in a snapshot's summary; None when it has none."""
        if BASE_SNAPSHOT not in summary:
            return None
        base = int(summary[BASE_SNAPSHOT])
        stale, fresh = summary.get(STALE_BATCHES), summary.get(FRESH_BATCHES)
        if stale is not None and stale != ALL_STALE:
            return cls(base, _keys(stale))
        return cls(base, _keys(fresh or "[]"), only=True) if stale is None else cls.nothing(base)


def overlap(one: BatchKey, other: BatchKey) -> bool:
    """Whether a row may be in both batches."""
    values = dict(other.items)
    return all(values[name] == value for name, value in one.items if name in values)


def covers(outer: BatchKey, inner: BatchKey) -> bool:
    """Whether every row of `inner` is in `outer`."""
    return set(outer.items) <= set(inner.items)


def _keys(text: str) -> tuple[BatchKey, ...]:
    return tuple(BatchKey(tuple(told.items())) for told in json.loads(text))


def _order(key: BatchKey) -> tuple[tuple[str, ...], tuple[tuple[int, str, float, str], ...]]:
    return key.columns, key.sort_key()
