"""What a rewrite did, for a reader: files before and after, what failed and why, and what to type next."""

from __future__ import annotations

from relayout.commit.rewrite_receipts import GroupOutcome, GroupReceipt, RewriteReceipt
from relayout.report.printable import one_line, printable
from relayout.report.sections import WIDTH, joined, labelled, listed
from relayout.table.quantities import count_text, duration_text, size_text

_MOST_REASONS = 10


def rewrite_receipt_text(receipt: RewriteReceipt, *, width: int = WIDTH) -> str:
    """One table: its numbers, its failures, the next command."""
    head = [f"Table {printable(receipt.table)}: {_state(receipt)}"]
    head += labelled("rows", _rows(receipt), width)
    if receipt.dead_deletes:
        head += labelled(
            "deletes", f"{count_text(receipt.dead_deletes, 'delete file')} that nothing needed went", width
        )
    head += labelled("snapshots", ", ".join(str(number) for number in receipt.snapshot_ids), width)
    failed = [_reason(group) for group in receipt.groups if group.outcome is not GroupOutcome.DONE]
    head += listed("not done", failed, width, _MOST_REASONS)
    return joined([head, [_ending(receipt)]])


def _state(receipt: RewriteReceipt) -> str:
    if not receipt.groups:
        return "nothing to rewrite"
    before, after = receipt.sum("files_before"), receipt.sum("files_after")
    sizes = f"{size_text(receipt.sum('bytes_before'))} -> {size_text(receipt.sum('bytes_after'))}"
    groups = count_text(receipt.count(GroupOutcome.DONE), "group")
    return f"{before:,} files -> {after:,} ({sizes}) in {groups}, {duration_text(receipt.seconds)}"


def _rows(receipt: RewriteReceipt) -> str:
    rows = receipt.sum("rows")
    if not rows:
        return ""
    deleted = receipt.sum("deleted_rows")
    gone = f", {count_text(deleted, 'deleted row')} gone for good" if deleted else ""
    return f"{count_text(rows, 'row')}, the same before and after{gone}"


def _reason(group: GroupReceipt) -> str:
    place = ", ".join(f"{name}={value}" for name, value in (group.partition or {}).items()) or "unpartitioned"
    return f"spec {group.spec_id}, {printable(place)}: {one_line(group.note)}"


def _ending(receipt: RewriteReceipt) -> str:
    if receipt.complete:
        return "Every group is done." if receipt.groups else "Every file is as it should be."
    return "Run the same command again: what is done is not done twice."
