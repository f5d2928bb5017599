"""Which files are worth rewriting, and in which groups: Iceberg's own thresholds, and a reason for each group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag

from relayout.compact.options import RewriteOptions
from relayout.table.quantities import count_text, size_text


class Why(IntFlag):
    """Why a file is a candidate."""

    NOTHING = 0
    SMALL = 1
    LARGE = 2
    DELETES = 4
    ASKED = 8
    OLD_SPEC = 16


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


def why_rewritten(size_bytes: int, rows: int, deletes: int, deleted_rows: int, options: RewriteOptions) -> Why:
    """What speaks for rewriting a file, by itself."""
    why = Why.ASKED if options.rewrite_all else Why.NOTHING
    if size_bytes < options.smallest_bytes:
        why |= Why.SMALL
    elif size_bytes > options.largest_bytes:
        why |= Why.LARGE
    threshold = options.delete_file_threshold
    if threshold is not None and deletes >= threshold:
        why |= Why.DELETES
    if rows and deleted_rows / rows >= options.delete_ratio_threshold:
        why |= Why.DELETES
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
    if options.rewrite_all or any(candidate.why & (Why.DELETES | Why.OLD_SPEC) for candidate in group):
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
    counts: Counter[Why] = Counter()
    for candidate in group:
        counts.update(flag for flag in Why if flag and candidate.why & flag)
    told = []
    if counts[Why.OLD_SPEC]:
        told.append(f"{count_text(counts[Why.OLD_SPEC], 'file')} of an older spec")
    if counts[Why.SMALL] and not counts[Why.OLD_SPEC]:
        told.append(f"{count_text(counts[Why.SMALL], 'file')} below {size_text(options.smallest_bytes)}")
    if counts[Why.LARGE] and not counts[Why.OLD_SPEC]:
        told.append(f"{count_text(counts[Why.LARGE], 'file')} above {size_text(options.largest_bytes)}")
    if counts[Why.DELETES]:
        told.append(f"{count_text(counts[Why.DELETES], 'file')} with deletes")
    return ", ".join(told) or f"{count_text(len(group), 'file')} asked for"
