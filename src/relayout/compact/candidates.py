"""Which files are worth rewriting, and in which groups: Iceberg's own thresholds, and a reason for each group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from relayout.compact.options import RewriteOptions
from relayout.table.quantities import count_text, size_text

SMALL, LARGE, DELETES, ASKED, OLD_SPEC = 1, 2, 4, 8, 16
"""Why a file is a candidate, as bits of a number: the arithmetic of an enum would cost more than all the rest."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A data file that may be rewritten.

    `bin` is what it is grouped by and `key` the place of its partition; they differ only where files move to another
    spec. `deletes` are places in the delete index.
    """

    bin: int
    key: int
    data_sequence_number: int
    path: str
    format: str
    rows: int
    size_bytes: int
    why: int
    match: str
    first_row_id: int | None
    sort_order_id: int | None
    deletes: tuple[int, ...]


def why_rewritten(size_bytes: int, rows: int, deletes: int, deleted_rows: int, options: RewriteOptions) -> int:
    """What speaks for rewriting a file, by itself; 0 is nothing."""
    why = ASKED if options.rewrite_all else 0
    if size_bytes < options.smallest_bytes:
        why |= SMALL
    elif size_bytes > options.largest_bytes:
        why |= LARGE
    threshold = options.delete_file_threshold
    if threshold is not None and deletes >= threshold:
        why |= DELETES
    if rows and deleted_rows / rows >= options.delete_ratio_threshold:
        why |= DELETES
    return why


def packed(candidates: Iterable[Candidate], options: RewriteOptions) -> Iterator[list[Candidate]]:
    """Candidates of one partition, in their order, in groups that stay below the largest size and number."""
    group: list[Candidate] = []
    size = 0
    for candidate in candidates:
        full = len(group) >= options.max_file_group_input_files
        if group and (full or size + candidate.size_bytes > options.max_file_group_size_bytes):
            yield group
            group, size = [], 0
        group.append(candidate)
        size += candidate.size_bytes
    if group:
        yield group


def is_worth_it(group: Sequence[Candidate], options: RewriteOptions) -> bool:
    """Whether rewriting the group gains something: enough files, enough bytes, too much in one file, or deletes."""
    if options.rewrite_all or any(candidate.why & (DELETES | OLD_SPEC) for candidate in group):
        return True
    size = sum(candidate.size_bytes for candidate in group)
    several = len(group) > 1
    return (
        (several and len(group) >= options.min_input_files)
        or (several and size > options.target_bytes)
        or size > options.largest_bytes
    )


def output_files(size_bytes: int, options: RewriteOptions) -> int:
    """How many files so many bytes become; a small rest is spread over the others rather than left as a small file."""
    target = options.target_bytes
    if size_bytes <= target:
        return 1
    whole, rest = divmod(size_bytes, target)
    if rest >= options.smallest_bytes:
        return whole + 1
    most = min(1.1 * target, target + (options.largest_bytes - target) * 0.5)
    return whole if size_bytes / whole < most else math.ceil(size_bytes / target)


def reason_of(group: Sequence[Candidate], options: RewriteOptions) -> str:
    """`12 files below 402 MB, 1 file with deletes`."""

    def counted(bit: int) -> int:
        return sum(1 for candidate in group if candidate.why & bit)

    told = []
    if old := counted(OLD_SPEC):
        told.append(f"{count_text(old, 'file')} of an older spec")
    if small := counted(SMALL):
        told.append(f"{count_text(small, 'file')} below {size_text(options.smallest_bytes)}")
    if large := counted(LARGE):
        told.append(f"{count_text(large, 'file')} above {size_text(options.largest_bytes)}")
    if deleted := counted(DELETES):
        told.append(f"{count_text(deleted, 'file')} with deletes")
    return ", ".join(told) or f"{count_text(len(group), 'file')} asked for"
