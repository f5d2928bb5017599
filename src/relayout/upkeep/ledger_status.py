"""What ledger and history say of a table's batches, as `relayout status` shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from relayout.ledger.records import BatchRecord, State
from relayout.ledger.state import DoneBatch, LedgerState
from relayout.table.batches import BatchKey
from relayout.table.facts import Snapshot
from relayout.upkeep.lake_status import BatchState, BatchStatus, LedgerStatus


def ledger_status(
    state: LedgerState, records: Iterable[BatchRecord], ancestry: Sequence[Snapshot] = ()
) -> LedgerStatus:
    """Every batch that is loaded or failed, in the order of the keys; `records` tell when the last run was."""
    committed_at_ms = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in ancestry}
    runs = [record.recorded_at_ms for record in records if record.state is not State.INVALIDATED]
    runs += [snapshot.timestamp_ms for snapshot, _ in state.unrecorded]
    return LedgerStatus(
        batches=tuple(
            _batch_status(key, state, committed_at_ms)
            for key in sorted({*state.done, *state.failed}, key=BatchKey.sort_key)
        ),
        unrecorded=len(state.unrecorded),
        last_run_ms=max(runs, default=None),
    )


def _batch_status(key: BatchKey, state: LedgerState, committed_at_ms: Mapping[int, int]) -> BatchStatus:
    done, failed = state.done.get(key), state.failed.get(key)
    error, failed_at_ms = (failed.error, failed.recorded_at_ms) if failed else ("", None)
    if done is None:
        return BatchStatus(key, BatchState.FAILED, error=error, failed_at_ms=failed_at_ms)
    now = BatchState.FAILED if failed else BatchState.INVALIDATED if done.invalidated else BatchState.DONE
    return BatchStatus(
        key=key,
        state=now,
        rows=done.stamp.rows,
        files=done.stamp.files,
        size_bytes=done.stamp.size_bytes,
        snapshot_id=done.snapshot_id,
        loaded_at_ms=_loaded_at_ms(done, committed_at_ms),
        in_ledger=done.record is not None,
        error=error,
        failed_at_ms=failed_at_ms,
    )


def _loaded_at_ms(done: DoneBatch, committed_at_ms: Mapping[int, int]) -> int | None:
    """When the commit was made; of an expired one the ledger knows when its line was written."""
    written = done.record.recorded_at_ms if done.record else None
    return committed_at_ms.get(done.snapshot_id, written)
