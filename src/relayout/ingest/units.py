"""From planned batches to units of work: what is read together, and how it is split so that memory stays bounded."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from relayout.ingest.advice import LARGEST_BATCH_BYTES, LARGEST_BATCH_FILES
from relayout.ingest.plan import PlannedBatch
from relayout.table.batches import BatchKey, Scalar
from relayout.table.sources import SourceFile

SMALLEST_PART_BYTES = 64_000_000
"""Below this a part costs more to start than it saves."""

FEW_COMMITS = 4
MOST_COMMITS = 32
LARGEST_GROUP = 200

WORTH_A_COMMIT_BYTES = 256_000_000
"""Loading this much takes several times as long as a commit, so that commits stay a small share of the work."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Batches that are read together because they share files; most units are one batch.

    `mixed` says that the files hold rows of other batches too, which must not be taken for rows of these.
    """

    batches: tuple[PlannedBatch, ...]
    parts: tuple[tuple[SourceFile, ...], ...]
    mixed: bool = False

    @property
    def keys(self) -> tuple[BatchKey, ...]:
        return tuple(batch.key for batch in self.batches)

    @property
    def constants(self) -> Mapping[str, Scalar]:
        """Batch values that hold for every row of the unit."""
        return dict(self.batches[0].key.items) if len(self.batches) == 1 and not self.mixed else {}

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for part in self.parts for file in part)


def units_of(
    batches: Iterable[PlannedBatch],
    files: Mapping[BatchKey, Sequence[SourceFile]],
    shared: Collection[str],
    parallelism: int,
    fans_out: bool,
) -> tuple[Unit, ...]:
    """Join batches that share a file, split what is large, and use idle cores where that makes no extra files."""
    components = _components(tuple(batches), files, shared)
    spare = 1 if fans_out or not components else max(1, parallelism // len(components))
    units = []
    for members in components:
        distinct = {file.path: file for batch in members for file in files[batch.key]}
        parts = split(tuple(distinct.values()), spare)
        units.append(Unit(members, parts, any(path in shared for path in distinct)))
    return tuple(units)


def _components(
    batches: tuple[PlannedBatch, ...], files: Mapping[BatchKey, Sequence[SourceFile]], shared: Collection[str]
) -> list[tuple[PlannedBatch, ...]]:
    if not shared:
        return [(batch,) for batch in batches]
    owner: dict[str, int] = {}
    groups: dict[int, list[PlannedBatch]] = {}
    for number, batch in enumerate(batches):
        joined = {owner[file.path] for file in files[batch.key] if file.path in owner}
        groups[number] = [batch]
        for other in sorted(joined):
            groups[number] = groups.pop(other) + groups[number]
            for path, held in owner.items():
                if held == other:
                    owner[path] = number
        for file in files[batch.key]:
            if file.path in shared:
                owner[file.path] = number
    return [tuple(members) for members in groups.values()]


def split(files: Sequence[SourceFile], spare: int) -> tuple[tuple[SourceFile, ...], ...]:
    """Parts of at most a gigabyte and a thousand files, of about equal size."""
    total = sum(file.size_bytes for file in files)
    count = max(
        math.ceil(total / LARGEST_BATCH_BYTES),
        math.ceil(len(files) / LARGEST_BATCH_FILES),
        min(spare, total // SMALLEST_PART_BYTES),
        1,
    )
    parts: list[list[SourceFile]] = [[] for _ in range(min(count, len(files)) or 1)]
    lightest = [(0, 0, number) for number in range(len(parts))]
    for file in sorted(files, key=lambda file: (-file.size_bytes, file.path)):
        load, held, number = lightest[0]
        parts[number].append(file)
        heapq.heapreplace(lightest, (load + file.size_bytes, held + 1, number))
    return tuple(tuple(sorted(part, key=lambda file: file.path)) for part in parts)


def groups_of(units: Sequence[Unit], parallelism: int) -> tuple[tuple[Unit, ...], ...]:
    """Units that share one job and one commit: one each while they are few, more where a commit each would cost much.

    Where units are many and small, a group has enough of them to be worth its commit.
    """
    if len(units) <= FEW_COMMITS:
        return apart(units)
    mean_bytes = max(1, sum(unit.size_bytes for unit in units) // len(units))
    size = min(math.ceil(WORTH_A_COMMIT_BYTES / mean_bytes), math.ceil(len(units) / FEW_COMMITS))
    # The cores come to the end of such a group together.
    whole = math.ceil(size / parallelism) * parallelism if size > parallelism else size
    return _in_groups(units, max(whole, _fewest(units)))


def apart(units: Sequence[Unit]) -> tuple[tuple[Unit, ...], ...]:
    """Units with a job of their own as far as that does not swamp the table with commits.

    What took down the job of one unit then harms no other one.
    """
    return _in_groups(units, _fewest(units))


def _fewest(units: Sequence[Unit]) -> int:
    return max(1, math.ceil(len(units) / MOST_COMMITS))


def _in_groups(units: Sequence[Unit], size: int) -> tuple[tuple[Unit, ...], ...]:
    size = min(size, LARGEST_GROUP)
    return tuple(tuple(units[start : start + size]) for start in range(0, len(units), size))
