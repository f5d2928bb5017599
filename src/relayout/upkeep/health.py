"""A table's health as a number from 0 to 100, with the reason and the fix for every point that is missing.

Each kind of debt has a most that it can cost, and these add up to 100. A fix is a command that takes the points back.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from relayout.read.census import FileCensus
from relayout.table.quantities import count_text

MERGEABLE_POINTS = 30
LONE_POINTS = 10
DELETE_POINTS = 25
LAYOUT_POINTS = 15
FAILED_POINTS = 15
INVALIDATED_POINTS = 5

WORST_DELETED_SHARE = 0.2
LONE_MATTER_FROM = 1_000
"""Below so many files a table is read quickly even if its partitions hold little."""

FORMULA = (
    "100"
    f" - {MERGEABLE_POINTS} x files that merging small ones would save / data files"
    f" - {LONE_POINTS} x small files alone in their partition / data files (from {LONE_MATTER_FROM:,} of them)"
    f" - {DELETE_POINTS} x the larger of delete files / data files and deleted rows / {WORST_DELETED_SHARE:.0%} of the"
    " rows"
    f" - {LAYOUT_POINTS} x bytes that do not lie as declared / bytes"
    f" - {FAILED_POINTS} x failed batches / batches (5 at least)"
    f" - {INVALIDATED_POINTS} x invalidated batches / batches (1 at least)"
)


@dataclass(frozen=True, slots=True)
class Debts:
    """What health is judged by; `census` is None where the files were not counted.

    `drifted` says that the table's current layout is not the declared one; `other_spec_bytes` lie in files of earlier
    specs.
    """

    census: FileCensus | None
    drifted: bool = False
    other_spec_bytes: int = 0
    batches: int = 0
    failed: int = 0
    invalidated: int = 0


@dataclass(frozen=True, slots=True)
class Loss:
    """Points that are missing, why, and the command that brings them back."""

    points: int
    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Health:
    """The score is 100 less all losses; of files that were not counted (`files_counted`) it can tell none."""

    losses: tuple[Loss, ...] = ()
    files_counted: bool = True

    @property
    def score(self) -> int:
        return 100 - sum(loss.points for loss in self.losses)

    def to_json(self) -> dict[str, Any]:
        return {
            "score": self.score,
            "files_counted": self.files_counted,
            "formula": FORMULA,
            "lost": [asdict(loss) for loss in self.losses],
        }


def health_of(table: str, debts: Debts) -> Health:
    """Judge a table; `table` is its name as a command takes it."""
    found = [*_file_losses(table, debts.census), *_layout_losses(table, debts), *_batch_losses(debts)]
    return Health(tuple(loss for loss in found if loss.points > 0), files_counted=debts.census is not None)


def _file_losses(table: str, census: FileCensus | None) -> list[Loss]:
    if census is None or not census.data_files:
        return []
    files = census.data_files
    losses = [
        Loss(
            _points(MERGEABLE_POINTS, census.excess_files / files),
            f"{count_text(census.excess_files, 'file')} fewer of {files:,} would do if small ones were merged",
            f"relayout compact {table}",
        )
    ]
    if census.lone_files >= LONE_MATTER_FROM:
        losses.append(
            Loss(
                _points(LONE_POINTS, census.lone_files / files),
                f"{count_text(census.lone_files, 'small file')} with too few neighbours in their partition to merge",
                "declare fewer or coarser partition keys, then relayout apply",
            )
        )
    share = max(census.delete_files / files, census.deleted_rows / max(1, census.rows) / WORST_DELETED_SHARE)
    told = f"{count_text(census.delete_files, 'delete file')} to merge with {count_text(files, 'data file')} on read"
    if census.deleted_rows:
        told += f", {count_text(census.deleted_rows, 'deleted row')}"
    losses.append(Loss(_points(DELETE_POINTS, share), told, f"relayout compact {table}"))
    return losses


def _layout_losses(table: str, debts: Debts) -> list[Loss]:
    if debts.drifted:
        what = "the table is not laid out as declared"
        return [Loss(LAYOUT_POINTS, what, f"relayout apply {table}")]
    size = debts.census.size_bytes if debts.census else 0
    if not size or not debts.other_spec_bytes:
        return []
    share = debts.other_spec_bytes / size
    what = f"{share:.0%} of the bytes lie in files of earlier partition specs"
    return [Loss(_points(LAYOUT_POINTS, share), what, f"relayout compact {table} --mode migrate")]


def _batch_losses(debts: Debts) -> list[Loss]:
    losses = []
    batches = max(1, debts.batches)
    if debts.failed:
        what = f"{count_text(debts.failed, 'batch', 'batches')} failed when last tried"
        points = max(5, _points(FAILED_POINTS, debts.failed / batches))
        losses.append(Loss(points, what, "relayout retry"))
    if debts.invalidated:
        what = f"{count_text(debts.invalidated, 'batch', 'batches')} invalidated and not loaded again yet"
        points = max(1, _points(INVALIDATED_POINTS, debts.invalidated / batches))
        losses.append(Loss(points, what, "relayout apply"))
    return losses


def _points(most: int, share: float) -> int:
    return round(most * min(1.0, share))
