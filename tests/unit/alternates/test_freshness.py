"""Accounts of alternates against a model: what each history says must be what the rows would say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from relayout.alternates.freshness import accounts_in, carried, followed, freshest, still_holds
from relayout.ledger.records import BatchStamp, stamp_summary
from relayout.table.alternates import ALL_STALE, BASE_SNAPSHOT, FRESH_BATCHES, STALE_BATCHES, Account
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot

YEARS = (2020, 2021, 2022)


def year(value: int | None) -> BatchKey:
    return BatchKey((("year", value),))


def snapshot(number: int, parent: int | None, operation: str = "overwrite", **summary: str) -> Snapshot:
    return Snapshot(number, parent, number, number * 1000, operation, summary)


def stamped(number: int, parent: int | None, *years: int) -> Snapshot:
    stamps = [BatchStamp(year(value), "f", "s", 1, 1, 1) for value in years]
    return Snapshot(number, parent, number, number * 1000, "overwrite", stamp_summary("p", "r", "base", stamps, None))


def told(number: int, account: Account) -> Snapshot:
    return Snapshot(number, None, number, number * 1000, "overwrite", account.summary())


def test_an_account_reads_back_from_its_summary() -> None:
    for account in (
        Account(7),
        Account(7, (year(None), year(2020))),
        Account(7, (BatchKey((("name", "a,\"b'"), ("day", "2020-01-01"))),), only=True),
        Account.nothing(7),
    ):
        assert Account.from_summary(account.summary()) == account
    assert Account.from_summary({}) is None


def test_summaries_say_it_as_the_routing_rule_reads_it() -> None:
    assert Account(7).summary() == {BASE_SNAPSHOT: "7", STALE_BATCHES: "[]"}
    assert Account.nothing(7).summary() == {BASE_SNAPSHOT: "7", STALE_BATCHES: ALL_STALE}
    assert Account(7, (year(2020),)).summary() == {BASE_SNAPSHOT: "7", STALE_BATCHES: '[{"year":2020}]'}
    assert Account(7, (year(2020),), only=True).summary() == {BASE_SNAPSHOT: "7", FRESH_BATCHES: '[{"year":2020}]'}


def test_an_ingestion_makes_just_its_batches_stale() -> None:
    base = [stamped(3, 2, 2021), stamped(2, 1, 2020), stamped(1, None, 2020, 2021)]
    assert carried(Account(1), base) == Account(3, (year(2020), year(2021)))
    assert carried(Account(2), base) == Account(3, (year(2021),))
    assert carried(Account(3), base) == Account(3)


def test_a_replace_changes_nothing_and_anything_else_everything() -> None:
    base = [snapshot(3, 2, "replace"), stamped(2, 1, 2020), stamped(1, None, 2020)]
    assert carried(Account(2), base) == Account(3)
    for operation in ("append", "overwrite", "delete"):
        assert carried(Account(2), [snapshot(3, 2, operation), *base[1:]]) == Account.nothing(3)


def test_a_snapshot_that_was_rolled_back_is_not_in_the_ancestry() -> None:
    base = [stamped(3, 1, 2020), stamped(1, None, 2020)]
    assert carried(Account(2), base) is None


def test_history_may_be_expired_right_behind_the_account() -> None:
    assert carried(Account(1), [stamped(3, 2, 2021), snapshot(2, 1, "replace")]) == Account(3, (year(2021),))
    assert carried(Account(0), [stamped(3, 2, 2021), snapshot(2, 1, "replace")]) is None


def test_batches_of_other_columns_are_stale_where_they_overlap() -> None:
    month = BatchKey((("year", 2020), ("month", 1)))
    fresh = Account(1, (month, year(2021)), only=True)
    assert fresh.without([year(2020)]).batches == (year(2021),)
    assert Account(1, (month,)).having([year(2020)]).whole
    assert Account(1, (year(2020),)).having([month]).batches == (year(2020),)
    assert Account(1).without([BatchKey()]).empty
    assert Account.nothing(1).having([BatchKey()]).whole


def test_a_compacted_alternate_keeps_its_account_and_a_foreign_change_has_none() -> None:
    own = told(1, Account(5))
    assert [number for number, _ in accounts_in([snapshot(2, 1, "replace"), own])] == [2, 1]
    assert [number for number, _ in accounts_in([snapshot(2, 1, "delete"), own])] == [1]
    assert [number for number, _ in accounts_in([snapshot(3, 2, "replace"), snapshot(2, 1, "delete"), own])] == [1]


def test_an_older_snapshot_of_the_alternate_serves_an_older_base() -> None:
    base = [stamped(2, 1, 2020), stamped(1, None, 2020)]
    alternate = [told(12, Account(2)), told(11, Account(1))]
    newest, travelled = freshest(alternate, base), freshest(alternate, base[1:])
    assert newest is not None
    assert (newest.snapshot_id, newest.account.whole) == (12, True)
    assert travelled is not None
    assert (travelled.snapshot_id, travelled.account.whole) == (11, True)
    assert freshest(alternate, [snapshot(3, None, "append")]) is None


@dataclass
class World:
    """Rows are versions by year; histories hold every snapshot with the rows that it had."""

    base: list[Snapshot] = field(default_factory=list)
    base_rows: dict[int, dict[int, int]] = field(default_factory=dict)
    alternate: list[Snapshot] = field(default_factory=list)
    alternate_rows: dict[int, dict[int, int]] = field(default_factory=dict)
    clock: int = 0

    def ingest(self, years: Sequence[int]) -> None:
        self.clock += 1
        parent = self.base[0].snapshot_id if self.base else None
        rows = dict(self.base_rows[parent]) if parent else {}
        self.base.insert(0, stamped(self.clock, parent, *years))
        self.base_rows[self.clock] = rows | dict.fromkeys(years, self.clock)

    def change(self, operation: str) -> None:
        if not self.base:
            return
        self.clock += 1
        parent = self.base[0].snapshot_id
        rows = self.base_rows[parent]
        self.base.insert(0, snapshot(self.clock, parent, operation))
        same = operation == "replace"
        self.base_rows[self.clock] = rows if same else dict.fromkeys(rows, self.clock)

    def roll_back(self, steps: int) -> None:
        del self.base[: min(steps, len(self.base) - 1)]

    def follow(self, years: Sequence[int]) -> None:
        if not self.base:
            return
        self.clock += 1
        now = self.base[0].snapshot_id
        before = next(iter(accounts_in(self.alternate)), None)
        account = before and carried(before[1], self.base)
        rows = dict(self.alternate_rows[self.alternate[0].snapshot_id]) if self.alternate else {}
        for key in years:
            rows.pop(key, None)
            if key in self.base_rows[now]:
                rows[key] = self.base_rows[now][key]
        fresh = (account or Account.nothing(now)).having(year(key) for key in years)
        self.alternate.insert(0, told(self.clock, fresh))
        self.alternate_rows[self.clock] = rows


years = st.lists(st.sampled_from(YEARS), min_size=1, max_size=2, unique=True)
steps = st.one_of(
    st.tuples(st.just("ingest"), years),
    st.tuples(st.just("follow"), years),
    st.tuples(st.just("change"), st.sampled_from(["replace", "append", "delete"])),
    st.tuples(st.just("roll_back"), st.integers(1, 2)),
)


@given(st.lists(steps, min_size=1, max_size=14))
def test_what_is_called_fresh_holds_the_rows_of_the_base(done: list[tuple[str, object]]) -> None:
    world = World()
    for verb, argument in done:
        getattr(world, verb)(argument)
    for start in range(len(world.base)):
        found = freshest(world.alternate, world.base[start:])
        if found is None:
            continue
        base, rows = world.base_rows[world.base[start].snapshot_id], world.alternate_rows[found.snapshot_id]
        named = {dict(key.items)["year"] for key in found.account.batches}
        fresh = [key for key in YEARS if (key in named) == found.account.only]
        assert {key: rows.get(key) for key in fresh} == {key: base.get(key) for key in fresh}


def test_a_batch_holds_until_somebody_changes_it() -> None:
    base = [stamped(4, 3, 2022), snapshot(3, 2, "replace"), stamped(2, 1, 2021), stamped(1, None, 2020)]
    assert still_holds(year(2020), 1, base)
    assert not still_holds(year(2021), 1, base)
    assert still_holds(year(2021), 2, base)
    assert not still_holds(BatchKey(), 2, base)
    assert not still_holds(year(2020), 9, base)
    assert not still_holds(year(2020), 1, [snapshot(5, 4, "delete"), *base])


def test_rows_that_are_older_than_those_they_replace_are_called_stale() -> None:
    base = [stamped(3, 2, 2022), stamped(2, 1, 2020), stamped(1, None, 2020, 2021, 2022)]
    newer = told(11, Account(2))
    assert followed([newer], {year(2022): 3}, base) == Account(3)
    assert followed([newer], {year(2020): 1, year(2022): 3}, base) == Account(3, (year(2020),))
    assert followed([], {year(2020): 2, year(2021): 1, year(2022): 3}, base) == Account(3)
    assert followed([], {year(2020): 1, year(2021): 1}, base) == Account(3, (year(2020), year(2022)))
    assert followed([told(11, Account.nothing(2))], {year(2022): 3}, base) is None
