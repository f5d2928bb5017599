"""Layout advice: what the declared layout will look like, against the sizes that are known to work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relayout.table.batches import BatchKey
from relayout.table.layouts import Layout
from relayout.table.quantities import size_text
from relayout.table.sources import SourceFile

MOST_FILES = 10_000
SMALLEST_AVERAGE_BYTES = 100_000_000
MOST_VALUES_PER_LEVEL = 1_000
DEEPEST = 4
LARGEST_BATCH_BYTES = 1_000_000_000
LARGEST_BATCH_FILES = 1_000


@dataclass(frozen=True, slots=True)
class Sample:
    """What laying a few source rows out showed; `tuples` counts distinct partition tuples among `rows`.

    The rows are those of one file, which holds rows of so many `batches`.
    """

    rows: int
    source_bytes: int
    data_bytes: int
    tuples: int
    values_per_level: tuple[tuple[str, int], ...]
    batches: int = 1


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the table will look like once all its batches are loaded."""

    files: int
    size_bytes: int
    rows: int | None
    depth: int
    values_per_level: tuple[tuple[str, int], ...]
    """By level as `describe` names it: `year`, `bucket[16](geo_fips)`."""

    @property
    def average_bytes(self) -> int:
        return self.size_bytes // self.files if self.files else 0


def forecast(
    layout: Layout,
    batches: Mapping[BatchKey, Sequence[SourceFile]],
    sample: Sample | None,
    target_file_bytes: int,
) -> Forecast:
    """Predict files and bytes of the whole table from the listing and one sampled source file.

    What paths tell is counted over the whole listing; only the spread of values within a file is taken from the sample.
    """
    source_bytes = sum({file.path: file.size_bytes for files in batches.values() for file in files}.values())
    if sample is None or not sample.source_bytes or not sample.rows:
        spread = sum(_path_combinations(layout, members) for members in batches.values())
        return Forecast(spread, source_bytes, None, len(layout.partition), ())
    per_byte = sample.data_bytes / sample.source_bytes
    size = int(source_bytes * per_byte)
    rows = round(source_bytes / sample.source_bytes * sample.rows)
    fan_out = max(1, math.ceil(sample.tuples / sample.batches))
    files = sum(
        max(
            fan_out * _path_combinations(layout, members),
            math.ceil(sum(file.size_bytes for file in members) * per_byte / target_file_bytes),
        )
        for members in batches.values()
    )
    levels = [(level, max(seen, _known_values(level, batches))) for level, seen in sample.values_per_level]
    return Forecast(files, size, rows, len(layout.partition), tuple(levels))


def _path_combinations(layout: Layout, members: Iterable[SourceFile]) -> int:
    """How many partitions the files of one batch go to by what their paths tell."""
    levels = set(layout.identity_columns)
    return len({tuple(item for item in file.path_values if item[0] in levels) for file in members})


def _known_values(level: str, batches: Mapping[BatchKey, Sequence[SourceFile]]) -> int:
    """Distinct values of a column that batch keys or paths tell."""
    in_keys = {value for key in batches for name, value in key.items if name == level}
    in_paths = {
        text for members in batches.values() for file in members for name, text in file.path_values if name == level
    }
    return max(len(in_keys), len(in_paths))


def layout_advice(layout: Layout, predicted: Forecast) -> tuple[str, ...]:
    """Warnings with their remedy; empty when the layout is within all targets."""
    found = []
    if predicted.files > MOST_FILES:
        found.append(
            f"about {predicted.files:,} files, the target is under {MOST_FILES:,}: "
            "partition by fewer or coarser columns, and move the rest into `sort`"
        )
    # Of a table that would fit into one good file nobody wants to hear that its files are small.
    if predicted.size_bytes > SMALLEST_AVERAGE_BYTES > predicted.average_bytes > 0:
        found.append(
            f"files of about {size_text(predicted.average_bytes)}, the target is over 100 MB: "
            "partition by fewer or coarser columns, or compact after loading"
        )
    if predicted.depth > DEEPEST:
        names = ", ".join(field.column for field in layout.partition[DEEPEST:])
        found.append(
            f"{predicted.depth} partition levels, the target is 2 to {DEEPEST}: keep {names} as plain columns, "
            "they are read from the path either way"
        )
    for level, values in predicted.values_per_level:
        if values > MOST_VALUES_PER_LEVEL:
            way_out = "`transform: bucket[16]` on it" if level in layout.identity_columns else "a coarser transform"
            found.append(
                f"{level} has {values:,} or more values, the target is under {MOST_VALUES_PER_LEVEL:,} per level: "
                f"use {way_out}, or put it into `sort`"
            )
    single = [column for column, values in predicted.values_per_level if values == 1 and predicted.depth > 1]
    if single:
        found.append(
            f"{', '.join(single)} {'has' if len(single) == 1 else 'have'} one value in what was sampled: "
            "such columns belong into the file, not into the path"
        )
    return tuple(found)


def batch_warnings(
    key: BatchKey, files: Sequence[SourceFile], batch_columns: Sequence[str], finer: Iterable[str]
) -> tuple[str, ...]:
    """Warnings for a batch that is larger than one step should be; it is split before it runs."""
    size = sum(file.size_bytes for file in files)
    named = [column for column in finer if column not in batch_columns]
    remedy = "Consider finer batch_partition_columns"
    remedy += f" (add {', '.join(named[:3])})." if named else "."
    if size > LARGEST_BATCH_BYTES:
        return (f"Batch {key} estimated at {size_text(size)}, threshold is 1 GB. {remedy}",)
    if len(files) > LARGEST_BATCH_FILES:
        return (f"Batch {key} has {len(files):,} files, threshold is {LARGEST_BATCH_FILES:,}. {remedy}",)
    return ()
