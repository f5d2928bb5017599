"""What the ledger says of each batch: loaded, failed, invalidated; a failed one keeps showing what it still holds."""

from __future__ import annotations

from dataclasses import replace

from relayout.ledger.records import BASE_LAYOUT, BatchRecord, BatchStamp, State, stamp_summary
from relayout.ledger.state import judge
from relayout.table.batches import BatchKey, Scalar
from relayout.table.facts import Snapshot
from relayout.upkeep.lake_status import BatchState, BatchStatus, LedgerStatus
from relayout.upkeep.ledger_status import ledger_status


def key(year: Scalar) -> BatchKey:
    return BatchKey((("year", year),))


def record(year: Scalar, state: State, at_ms: int, snapshot_id: int | None = None, error: str = "") -> BatchRecord:
    return BatchRecord(
        table_name="income",
        layout=BASE_LAYOUT,
        batch=key(year),
        state=state,
        fingerprint="sources",
        schema_hash="0f-1a",
        snapshot_id=snapshot_id,
        previous_stamp=None,
        sequence_number=snapshot_id or 0,
        plan_id="plan",
        run_id="run",
        rows=96 if snapshot_id else 0,
        files=2 if snapshot_id else 0,
        size_bytes=4_058 if snapshot_id else 0,
        seconds=0.8,
        error=error,
        recorded_at_ms=at_ms,
    )


def snapshot(number: int, at_ms: int, *years: Scalar, parent: int | None = None) -> Snapshot:
    stamps = [BatchStamp(key(year), "sources", "0f-1a", 96, 2, 4_058) for year in years]
    return Snapshot(number, parent, number, at_ms, "overwrite", stamp_summary("plan", "run", BASE_LAYOUT, stamps, None))


def told(ancestry: list[Snapshot], records: list[BatchRecord]) -> LedgerStatus:
    return ledger_status(judge(ancestry, records, BASE_LAYOUT), records, ancestry)


def loaded(year: Scalar, state: BatchState, snapshot_id: int, at_ms: int) -> BatchStatus:
    return BatchStatus(key(year), state, 96, 2, 4_058, snapshot_id, at_ms)


def test_a_table_that_was_never_loaded_has_no_batches() -> None:
    assert told([], []) == LedgerStatus()


def test_batches_stand_in_the_order_of_their_keys() -> None:
    status = told([snapshot(1, 100, 10, 9, None, "text")], [])
    assert [batch.key for batch in status.batches] == [key(None), key(9), key(10), key("text")]


def test_a_loaded_batch_shows_its_commit() -> None:
    status = told([snapshot(1, 100, 2020)], [record(2020, State.DONE, 150, 1)])
    assert status == LedgerStatus((loaded(2020, BatchState.DONE, 1, 100),), unrecorded=0, last_run_ms=150)


def test_a_batch_whose_snapshot_expired_was_loaded_when_its_line_was_written() -> None:
    foreign = Snapshot(2, 1, 2, 900, "append", {})
    status = told([foreign], [record(2020, State.DONE, 150, 1)])
    assert status.batches == (loaded(2020, BatchState.DONE, 1, 150),)


def test_a_batch_that_the_ledger_lacks_is_shown_as_such() -> None:
    status = told([snapshot(1, 100, 2020)], [])
    assert status.batches == (replace(loaded(2020, BatchState.DONE, 1, 100), in_ledger=False),)
    assert (status.unrecorded, status.last_run_ms) == (1, 100)


def test_an_invalidated_batch_keeps_its_rows_and_is_no_run() -> None:
    records = [record(2020, State.DONE, 150, 1), record(2020, State.INVALIDATED, 900, 1)]
    status = told([snapshot(1, 100, 2020)], records)
    assert status.batches == (loaded(2020, BatchState.INVALIDATED, 1, 100),)
    assert status.last_run_ms == 150


def test_a_batch_that_never_landed_shows_only_its_error() -> None:
    status = told([], [record(2020, State.FAILED, 300, error="torn gzip")])
    assert status.batches == (BatchStatus(key(2020), BatchState.FAILED, error="torn gzip", failed_at_ms=300),)
    assert status.last_run_ms == 300


def test_a_failed_reload_shows_the_rows_of_the_load_before() -> None:
    records = [record(2020, State.DONE, 150, 1), record(2020, State.FAILED, 300, error="torn gzip")]
    status = told([snapshot(1, 100, 2020)], records)
    expected = replace(loaded(2020, BatchState.FAILED, 1, 100), error="torn gzip", failed_at_ms=300)
    assert status.batches == (expected,)
    assert status.to_json() == {
        "done": 0,
        "failed": 1,
        "invalidated": 0,
        "unrecorded": 0,
        "last_run_ms": 300,
        "failures": [{"batch": {"year": 2020}, "error": "torn gzip", "failed_at_ms": 300, "next": "relayout retry"}],
    }
