"""What counts as done: told from made-up histories with rollbacks, expiry, crashes and invalidations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from relayout.ledger.records import BASE_LAYOUT, BatchRecord, BatchStamp, State, stamp_summary, stamps_in
from relayout.ledger.state import LedgerState, judge
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot


def key(year: int) -> BatchKey:
    return BatchKey((("year", year),))


@dataclass
class History:
    """A table and its ledger as commits leave them; every commit gets its ledger lines unless told otherwise."""

    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    current: int | None = None
    records: list[BatchRecord] = field(default_factory=list)
    clock: int = 0

    @property
    def ancestry(self) -> list[Snapshot]:
        found: list[Snapshot] = []
        next_id = self.current
        while next_id is not None:
            found.append(self.snapshots[next_id])
            next_id = found[-1].parent_id
        return found

    def expired(self, kept: int) -> list[Snapshot]:
        return self.ancestry[:kept]

    def load(self, *years: int, removed: bool = False, recorded: bool = True, layout: str = BASE_LAYOUT) -> int:
        stamps = [BatchStamp(key(year), f"sources {self.clock}", "0f-1a", 10, 1, 100, removed) for year in years]
        previous = next((one.snapshot_id for one in self.ancestry if stamps_in(one.summary, layout)), None)
        snapshot = self._commit("overwrite", stamp_summary("plan", "run", layout, stamps, previous))
        if recorded:
            state = State.REMOVED if removed else State.DONE
            self.records += [self._line(stamp, state, snapshot, previous, layout) for stamp in stamps]
        return snapshot.snapshot_id

    def foreign(self) -> int:
        return self._commit("append", {}).snapshot_id

    def fail(self, year: int) -> None:
        self.records.append(self._line(BatchStamp(key(year), "", "", 0, 0, 0), State.FAILED, None, None))

    def invalidate(self, year: int, snapshot_id: int) -> None:
        line = self._line(BatchStamp(key(year), "", "", 0, 0, 0), State.INVALIDATED, None, None)
        self.records.append(replace(line, snapshot_id=snapshot_id))

    def roll_back_to(self, snapshot_id: int) -> None:
        self.current = snapshot_id

    def judged(self, ancestry: Sequence[Snapshot] | None = None) -> LedgerState:
        return judge(self.ancestry if ancestry is None else ancestry, self.records, BASE_LAYOUT)

    def _commit(self, operation: str, summary: dict[str, str]) -> Snapshot:
        number = len(self.snapshots) + 1
        self.clock += 10
        snapshot = Snapshot(100 + number, self.current, number, self.clock, operation, summary)
        self.snapshots[snapshot.snapshot_id] = snapshot
        self.current = snapshot.snapshot_id
        return snapshot

    def _line(
        self,
        stamp: BatchStamp,
        state: State,
        snapshot: Snapshot | None,
        previous: int | None,
        layout: str = BASE_LAYOUT,
    ) -> BatchRecord:
        self.clock += 10
        return BatchRecord(
            table_name="income",
            layout=layout,
            batch=stamp.batch,
            state=state,
            fingerprint=stamp.fingerprint,
            schema_hash=stamp.schema_hash,
            snapshot_id=snapshot.snapshot_id if snapshot else None,
            previous_stamp=previous,
            sequence_number=snapshot.sequence_number if snapshot else 0,
            plan_id="plan",
            run_id="run",
            rows=stamp.rows,
            files=stamp.files,
            size_bytes=stamp.size_bytes,
            seconds=0.0,
            error="torn gzip" if state is State.FAILED else "",
            recorded_at_ms=self.clock,
        )


def loads(state: LedgerState) -> dict[int, int]:
    """Year -> the snapshot that holds its rows."""
    return {int(str(batch.items[0][1])): done.snapshot_id for batch, done in state.done.items()}


def invalidated(state: LedgerState) -> set[int]:
    return {int(str(batch.items[0][1])) for batch, done in state.done.items() if done.invalidated}


def failed(state: LedgerState) -> set[int]:
    return {int(str(batch.items[0][1])) for batch in state.failed}


def test_a_table_without_history_has_nothing_done() -> None:
    assert judge((), (), BASE_LAYOUT) == LedgerState()


def test_the_newest_load_of_a_batch_is_the_one_that_counts() -> None:
    history = History()
    history.load(2020)
    other = history.load(2021)
    again = history.load(2020)
    state = history.judged()
    assert loads(state) == {2020: again, 2021: other}
    assert state.newest_stamp == again
    assert state.counted == set(history.snapshots)
    assert state.unrecorded == ()


def test_several_batches_may_share_a_snapshot() -> None:
    history = History()
    both = history.load(2020, 2021)
    assert loads(history.judged()) == {2020: both, 2021: both}


def test_a_batch_that_was_taken_out_is_not_done() -> None:
    history = History()
    history.load(2020, 2021)
    removal = history.load(2021, removed=True)
    assert set(loads(history.judged())) == {2020}
    assert history.judged().newest_stamp == removal


def test_a_stamp_without_a_ledger_line_is_done_and_named_for_repair() -> None:
    history = History()
    history.load(2020)
    crashed = history.load(2021, recorded=False)
    state = history.judged()
    assert loads(state)[2021] == crashed
    assert state.done[key(2021)].record is None
    assert [(snapshot.snapshot_id, stamp.batch) for snapshot, stamp in state.unrecorded] == [(crashed, key(2021))]


def test_a_ledger_line_whose_commit_is_not_in_the_history_does_not_count() -> None:
    history = History()
    kept = history.load(2020)
    history.load(2021)
    history.roll_back_to(kept)
    assert loads(history.judged()) == {2020: kept}


def test_what_was_loaded_after_a_rollback_counts_and_what_it_undid_does_not() -> None:
    history = History()
    kept = history.load(2020)
    history.load(2021)
    history.roll_back_to(kept)
    after = history.load(2022)
    assert loads(history.judged()) == {2020: kept, 2022: after}
    assert loads(history.judged(history.expired(1))) == {2020: kept, 2022: after}


def test_stamps_and_lines_of_another_layout_say_nothing_of_this_one() -> None:
    history = History()
    base = history.load(2020)
    history.load(2021, layout="by_fips")
    state = history.judged()
    assert loads(state) == {2020: base}
    assert state.counted == {base}
    assert state.unrecorded == ()


def test_a_rewrite_in_place_shows_in_the_ledger_alone() -> None:
    history = History()
    loaded = history.load(2020)
    newer = replace(history.records[-1], schema_hash="0f-2b", recorded_at_ms=history.clock + 10)
    history.records.append(newer)
    done = history.judged().done[key(2020)]
    assert (done.snapshot_id, done.stamp.schema_hash, done.record) == (loaded, "0f-2b", newer)


def test_a_failure_stays_until_the_batch_is_loaded() -> None:
    history = History()
    loaded = history.load(2020)
    history.fail(2020)
    history.fail(2021)
    assert failed(history.judged()) == {2020, 2021}
    assert loads(history.judged()) == {2020: loaded}
    history.load(2021)
    assert failed(history.judged()) == {2020}


def test_a_load_whose_ledger_line_was_lost_settles_an_earlier_failure() -> None:
    history = History()
    history.fail(2020)
    history.load(2020, recorded=False)
    assert failed(history.judged()) == set()
    history.fail(2020)
    assert failed(history.judged()) == {2020}


def test_invalidating_a_batch_does_not_settle_its_failure() -> None:
    history = History()
    loaded = history.load(2020)
    history.fail(2020)
    history.invalidate(2020, loaded)
    assert failed(history.judged()) == {2020}
    assert invalidated(history.judged()) == {2020}


def test_loading_an_invalidated_batch_again_makes_it_done() -> None:
    history = History()
    history.invalidate(2020, history.load(2020))
    again = history.load(2020)
    assert invalidated(history.judged()) == set()
    assert loads(history.judged()) == {2020: again}


def test_a_stamp_without_a_line_can_be_invalidated() -> None:
    history = History()
    history.invalidate(2020, history.load(2020, recorded=False))
    assert invalidated(history.judged()) == {2020}


def test_an_invalidation_outlives_the_snapshot_that_it_names() -> None:
    history = History()
    history.invalidate(2020, history.load(2020))
    history.load(2021)
    assert invalidated(history.judged(history.expired(1))) == {2020}


def test_a_rollback_to_an_invalidated_load_brings_the_mark_back() -> None:
    history = History()
    first = history.load(2020)
    history.invalidate(2020, first)
    history.load(2020)
    history.roll_back_to(first)
    assert invalidated(history.judged()) == {2020}


def test_a_dropped_table_that_was_made_again_starts_from_nothing() -> None:
    before = History()
    before.load(2020)
    after = History(records=before.records)
    after.snapshots = {999: Snapshot(999, None, 1, 1, "append", {})}
    after.current = 999
    assert loads(after.judged()) == {}
    assert loads(judge((), before.records, BASE_LAYOUT)) == {}


# Any history at all.

YEARS = st.integers(2019, 2022)
LOADS = st.tuples(st.just("load"), st.lists(YEARS, min_size=1, max_size=3, unique=True), st.booleans())
FOREIGN = st.tuples(st.just("foreign"))
ROLLBACK = st.tuples(st.just("rollback"), st.integers(0, 20))
Event = tuple[Any, ...]


def played(events: Sequence[Event]) -> tuple[History, dict[int, dict[int, int]]]:
    """The history, and for each snapshot what was visible in it: year -> snapshot."""
    history = History()
    visible: dict[int, dict[int, int]] = {}
    for event in events:
        before = visible.get(history.current or 0, {})
        match event:
            case ("load", years, removed):
                snapshot_id = history.load(*years, removed=removed)
                rest = {year: held for year, held in before.items() if year not in years}
                visible[snapshot_id] = rest if removed else rest | dict.fromkeys(years, snapshot_id)
            case ("foreign",):
                visible[history.foreign()] = before
            case ("rollback", steps):
                ancestry = history.ancestry
                if ancestry:
                    history.roll_back_to(ancestry[min(steps, len(ancestry) - 1)].snapshot_id)
    return history, visible


@given(st.lists(LOADS | FOREIGN | ROLLBACK, max_size=12))
def test_what_is_done_is_what_the_current_snapshot_shows(events: list[Event]) -> None:
    history, visible = played(events)
    assert loads(history.judged()) == visible.get(history.current or 0, {})


@given(st.lists(LOADS | FOREIGN, min_size=1, max_size=12), st.data())
def test_a_rollback_reopens_exactly_what_it_undoes(events: list[Event], data: st.DataObject) -> None:
    history, visible = played(events)
    target = data.draw(st.sampled_from(sorted(history.snapshots)))
    history.roll_back_to(target)
    assert loads(history.judged()) == visible[target]


@given(st.lists(LOADS | FOREIGN, min_size=1, max_size=12), st.integers(1, 12))
def test_expiry_forgets_nothing(events: list[Event], kept: int) -> None:
    history, visible = played(events)
    state = history.judged(history.expired(kept))
    assert loads(state) == visible[history.current or 0]
    assert state.counted == history.judged().counted
    assert state.newest_stamp == history.judged().newest_stamp


@given(st.lists(LOADS | FOREIGN | ROLLBACK, min_size=1, max_size=12), st.integers(1, 12))
def test_expiry_brings_nothing_back_that_a_rollback_undid(events: list[Event], kept: int) -> None:
    history, visible = played(events)
    rest = history.expired(kept)
    # Where not one stamp is left and nothing points to one, only the order of commits can still be told.
    assume(any(stamps_in(snapshot.summary, BASE_LAYOUT) for snapshot in rest))
    assert loads(history.judged(rest)) == visible[history.current or 0]


@given(st.lists(LOADS, min_size=1, max_size=8), st.data())
def test_an_invalidation_marks_the_stamp_that_it_names_and_no_other(events: list[Event], data: st.DataObject) -> None:
    history, _ = played(events)
    before = history.judged()
    commits = sorted((record.snapshot_id or 0, record.batch.items[0][1]) for record in history.records)
    snapshot_id, year = data.draw(st.sampled_from(commits))
    history.invalidate(int(str(year)), snapshot_id)
    state = history.judged()
    assert loads(state) == loads(before)
    assert invalidated(state) == {
        held for held, visible in loads(before).items() if (held, visible) == (year, snapshot_id)
    }


@given(st.lists(LOADS | FOREIGN | ROLLBACK, max_size=10), st.randoms(use_true_random=False), st.integers(1, 12))
def test_the_order_in_which_lines_are_read_does_not_matter(events: list[Event], chance: Any, kept: int) -> None:
    history, _ = played(events)
    in_order = history.judged(history.expired(kept))
    chance.shuffle(history.records)
    assert history.judged(history.expired(kept)) == in_order


@given(st.lists(LOADS | FOREIGN | ROLLBACK, max_size=12), st.sets(st.integers(0, 30)))
def test_lost_ledger_lines_change_nothing_while_the_stamps_are_there(events: list[Event], lost: set[int]) -> None:
    history, visible = played(events)
    gone = [record for number, record in enumerate(history.records) if number in lost]
    history.records = [record for number, record in enumerate(history.records) if number not in lost]
    state = history.judged()
    live = {snapshot.snapshot_id for snapshot in history.ancestry}
    assert loads(state) == visible.get(history.current or 0, {})
    assert {(snapshot.snapshot_id, stamp.batch) for snapshot, stamp in state.unrecorded} == {
        (record.snapshot_id, record.batch) for record in gone if record.snapshot_id in live
    }
