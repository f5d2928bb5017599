"""The compaction plan: which files are rewritten together and why, as one frozen value that round-trips through JSON.

A group names its members by a digest. A small plan holds the members itself; a large one keeps them in a file beside
it, so that a million files need no more memory than a thousand. `plan_id` covers the digests, not the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from relayout.errors import UsageError
from relayout.table.rewrites import (
    ContentFile,
    GroupFiles,
    MembersElsewhere,
    PlannedDelete,
    PlannedFile,
    canonical_json,
    digest_of,
)

PLAN_SCHEMA = 1
PLAN_KIND = "compact-plan"


class Mode(StrEnum):
    """Whether files stay under the spec they were written with, or move to a target spec."""

    KEEP_SPEC = "keep-spec"
    MIGRATE = "migrate"


class JobOrder(StrEnum):
    """In which order groups are worked on."""

    NONE = "none"
    BYTES_ASC = "bytes-asc"
    BYTES_DESC = "bytes-desc"
    FILES_ASC = "files-asc"
    FILES_DESC = "files-desc"


class Arrangement(StrEnum):
    """How rows are laid out in the new files."""

    BINPACK = "binpack"
    SORT = "sort"
    ZORDER = "zorder"
    HILBERT = "hilbert"


@dataclass(frozen=True, slots=True)
class FilterStats:
    """How far a partition filter could be judged.

    `unevaluable_specs` counts specs, `eval_errors` and `fail_open_partitions` distinct partition keys, and
    `fail_open_files` the files of such partitions that became candidates.
    """

    unevaluable_specs: int = 0
    eval_errors: int = 0
    fail_open_partitions: int = 0
    fail_open_files: int = 0

    def to_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """Something that a reader of the plan should know; `count` says how often it was met."""

    code: str
    what: str
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read together and written anew, all of one `(spec_id, partition)` unless the mode is migrate.

    `partition` holds plain values by partition field name, null for an unpartitioned spec; a migrating group that takes
    files of several partitions names the target partitions that hold all of them instead, as far as they are known.
    `label` is the partition for a reader, `region=eu/ts_year=2024`. `spec_id` is -1 where files of several specs move
    together. `members` is the files themselves, or where they are kept.
    """

    group_id: int
    spec_id: int
    partition: Mapping[str, Any] | None
    label: str
    output_spec_id: int
    reason: str
    input_files: int
    input_bytes: int
    input_rows: int
    delete_files: int
    expected_output_files: int
    digest: str
    members: GroupFiles | MembersElsewhere

    @property
    def files(self) -> GroupFiles:
        """The members in hand; `compact.members.files_of` also reads those that are kept elsewhere."""
        if isinstance(self.members, MembersElsewhere):
            raise UsageError(
                f"the files of group {self.group_id} are kept in {self.members.file}",
                next="read them with relayout.compact.members.files_of(group)",
            )
        return self.members

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {**self.summary(), "digest": self.digest}
        if isinstance(self.members, MembersElsewhere):
            told["members"] = self.members.to_json()
        else:
            told["files"] = self.members.to_json()
        return told

    def summary(self) -> dict[str, Any]:
        """Everything but the members."""
        return {
            "group_id": self.group_id,
            "spec_id": self.spec_id,
            "partition": None if self.partition is None else dict(self.partition),
            "label": self.label,
            "output_spec_id": self.output_spec_id,
            "reason": self.reason,
            "input_files": self.input_files,
            "input_bytes": self.input_bytes,
            "input_rows": self.input_rows,
            "delete_files": self.delete_files,
            "expected_output_files": self.expected_output_files,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> FileGroup:
        members: GroupFiles | MembersElsewhere
        if "members" in told:
            members = MembersElsewhere(**told["members"], digest=told["digest"])
        else:
            members = GroupFiles.from_json(told["files"])
            if members.digest() != told["digest"]:
                raise ValueError(f"the files of group {told['group_id']} do not match their digest")
        values = {key: value for key, value in told.items() if key not in ("members", "files")}
        return cls(**values, members=members)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What migration leads to: data files and partitions of old specs before, of the target spec after."""

    files_before: int
    files_after: int
    partitions_before: int
    partitions_after: int | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CompactPlan:
    """What rewriting a table would do, group by group in job order, and why everything else stays as it is.

    `where` is the filter as it was understood, empty without one. `arrange_by` names the columns that rows are ordered
    by. `base_sequence_number` is the one of the base snapshot. `skipped` counts live data files that stay, by reason.
    """

    table: str
    table_uuid: str
    base_snapshot_id: int | None
    base_sequence_number: int
    mode: Mode
    target_spec_id: int
    target_file_bytes: int
    order: JobOrder
    arrangement: Arrangement
    arrange_by: tuple[str, ...]
    where: str
    groups: tuple[FileGroup, ...]
    filter_stats: FilterStats = FilterStats()
    warnings: tuple[PlanWarning, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    forecast: Forecast | None = None
    plan_id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.plan_id:
            object.__setattr__(self, "plan_id", self._digest())

    @property
    def has_work(self) -> bool:
        return bool(self.groups)

    @property
    def files_before(self) -> int:
        return sum(group.input_files for group in self.groups)

    @property
    def files_after(self) -> int:
        return sum(group.expected_output_files for group in self.groups)

    @property
    def input_bytes(self) -> int:
        return sum(group.input_bytes for group in self.groups)

    def to_json(self) -> dict[str, Any]:
        head = {"schema": PLAN_SCHEMA, "kind": PLAN_KIND, "plan_id": self.plan_id, "has_work": self.has_work}
        return {**head, **self._header(), "groups": [group.to_json() for group in self.groups]}

    @classmethod
    def from_json(cls, told: object) -> CompactPlan:
        """The plan in a document; one that was altered, or is of another kind, is refused."""
        if not isinstance(told, Mapping) or told.get("kind") != PLAN_KIND or told.get("schema") != PLAN_SCHEMA:
            raise UsageError(
                "this is not a compaction plan that this version understands",
                next="write one with `relayout compact TABLE --dry-run --json`",
            )
        try:
            plan = cls._parsed(told)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"the plan is damaged: {error!r}", next="write it again with `relayout compact TABLE --dry-run --json`"
            ) from error
        if plan.plan_id != told.get("plan_id"):
            raise UsageError(
                "the plan was altered: its content does not match its plan_id",
                next="write it again with `relayout compact TABLE --dry-run --json`",
            )
        return plan

    @classmethod
    def _parsed(cls, told: Mapping[str, Any]) -> CompactPlan:
        forecast = told["forecast"]
        return cls(
            table=told["table"],
            table_uuid=told["table_uuid"],
            base_snapshot_id=told["base_snapshot_id"],
            base_sequence_number=told["base_sequence_number"],
            mode=Mode(told["mode"]),
            target_spec_id=told["target_spec_id"],
            target_file_bytes=told["target_file_bytes"],
            order=JobOrder(told["order"]),
            arrangement=Arrangement(told["arrangement"]),
            arrange_by=tuple(told["arrange_by"]),
            where=told["where"],
            groups=tuple(FileGroup.from_json(group) for group in told["groups"]),
            filter_stats=FilterStats(**told["filter_stats"]),
            warnings=tuple(PlanWarning(**warning) for warning in told["warnings"]),
            skipped=tuple(told["skipped"].items()),
            forecast=None if forecast is None else Forecast(**forecast),
        )

    def _header(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "table_uuid": self.table_uuid,
            "base_snapshot_id": self.base_snapshot_id,
            "base_sequence_number": self.base_sequence_number,
            "mode": self.mode.value,
            "target_spec_id": self.target_spec_id,
            "target_file_bytes": self.target_file_bytes,
            "order": self.order.value,
            "arrangement": self.arrangement.value,
            "arrange_by": list(self.arrange_by),
            "where": self.where,
            "cost": {
                "groups": len(self.groups),
                "files_before": self.files_before,
                "files_after": self.files_after,
                "bytes": self.input_bytes,
            },
            "filter_stats": self.filter_stats.to_json(),
            "warnings": [warning.to_json() for warning in self.warnings],
            "skipped": dict(self.skipped),
            "forecast": None if self.forecast is None else self.forecast.to_json(),
        }

    def _digest(self) -> str:
        groups = [{**group.summary(), "digest": group.digest} for group in self.groups]
        return digest_of(canonical_json({**self._header(), "groups": groups}))


@dataclass(frozen=True, slots=True)
class RewriteDataFilesPlanningResult:
    """A plan beside what its filter could and could not judge."""

    plan: CompactPlan
    filter_stats: FilterStats


__all__ = [
    "Arrangement",
    "CompactPlan",
    "ContentFile",
    "FileGroup",
    "FilterStats",
    "Forecast",
    "GroupFiles",
    "JobOrder",
    "MembersElsewhere",
    "Mode",
    "PlanWarning",
    "PlannedDelete",
    "PlannedFile",
    "RewriteDataFilesPlanningResult",
]
