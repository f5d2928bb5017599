"""The ingestion plan: what each batch needs and why, as one frozen value that round-trips through JSON.

The plan names every batch with a fingerprint of its sources instead of carrying hundreds of thousands of paths. To
apply a stored plan the world is looked at again: what comes out must be the same plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from relayout.errors import UsageError
from relayout.ingest.advice import Forecast
from relayout.table.alternate_plans import AlternatePlan
from relayout.table.batches import BatchKey

PLAN_SCHEMA = 1

PRUNE = "--prune"
OVERWRITE_EDITS = "--overwrite-edits"
"""What must be typed before rows go that the sources no longer hold, or that somebody changed."""


class Reason(StrEnum):
    """Why a batch is in the plan."""

    NEW = "new"
    SOURCE_CHANGED = "source changed"
    SOURCE_REMOVED = "source removed"
    SCHEMA_CHANGED = "schema changed"
    LAYOUT_CHANGED = "layout changed"
    INVALIDATED = "invalidated"
    FAILED_BEFORE = "failed before"


class Action(StrEnum):
    """What happens to the batch's rows: replaced from sources, rewritten from the table, or taken out."""

    LOAD = "load"
    REWRITE = "rewrite"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """One batch; `blocked` says why it cannot run, `needs` names the flags without which it is left alone."""

    key: BatchKey
    action: Action
    reason: Reason
    files: int
    size_bytes: int
    rows_estimate: int | None
    fingerprint: str
    schema_hash: str
    changes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    parts: int = 1
    blocked: str = ""
    needs: str = ""

    @property
    def runs(self) -> bool:
        return not self.blocked and not self.needs

    @property
    def flags(self) -> frozenset[str]:
        """The flags that `needs` names, one by one."""
        return frozenset(self.needs.split())

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "key": dict(self.key.items)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> PlannedBatch:
        return cls(
            **{
                **told,
                "key": BatchKey(tuple(told["key"].items())),
                "action": Action(told["action"]),
                "reason": Reason(told["reason"]),
                "changes": tuple(told["changes"]),
                "warnings": tuple(told["warnings"]),
            }
        )


class Change(StrEnum):
    """What must happen to the table itself before its batches run."""

    NONE = "none"
    CREATE = "create"
    EVOLVE = "evolve"
    RELAYOUT = "change layout"


@dataclass(frozen=True, slots=True)
class Cost:
    """What `apply` works on when it is told nothing more; a file that several batches share is read and counted once.

    `rows` is an estimate, None where nothing could be sampled.
    """

    batches: int = 0
    files: int = 0
    size_bytes: int = 0
    rows: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"batches": self.batches, "files": self.files, "bytes": self.size_bytes, "rows": self.rows}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Cost:
        return cls(told["batches"], told["files"], told["bytes"], told["rows"])

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """The sum; rows only if every part that has batches knows them."""
        working = [cost for cost in costs if cost.batches]
        rows = [cost.rows for cost in working if cost.rows is not None]
        return cls(
            sum(cost.batches for cost in working),
            sum(cost.files for cost in working),
            sum(cost.size_bytes for cost in working),
            sum(rows) if working and len(rows) == len(working) else None,
        )


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What one declared table needs.

    `schema` is the whole wanted schema as (name, type) pairs; `engine` is `kernel` or `spark` with the reason why.
    """

    table: str
    layout: str
    layout_before: str
    change: Change
    schema: tuple[tuple[str, str], ...]
    schema_changes: tuple[str, ...]
    base_snapshot_id: int | None
    engine: str
    engine_reason: str
    batches: tuple[PlannedBatch, ...]
    done: int
    kept_without_source: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    bad_files: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    forecast: Forecast | None = None
    cost: Cost = Cost()
    problem: str = ""
    alternates: tuple[AlternatePlan, ...] = ()

    @property
    def has_work(self) -> bool:
        if any(alternate.has_work for alternate in self.alternates):
            return True
        return bool(self.batches) or self.change is not Change.NONE or bool(self.problem)

    def to_json(self) -> dict[str, Any]:
        plain = asdict(self)
        plain["batches"] = [batch.to_json() for batch in self.batches]
        plain["schema"] = [{"name": name, "type": kind} for name, kind in self.schema]
        plain["bad_files"] = [{"path": path, "reason": reason} for path, reason in self.bad_files]
        if self.forecast is not None:
            plain["forecast"]["average_bytes"] = self.forecast.average_bytes
            plain["forecast"]["values_per_level"] = dict(self.forecast.values_per_level)
        plain["cost"] = self.cost.to_json()
        plain["alternates"] = [alternate.to_json() for alternate in self.alternates]
        return plain

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> TablePlan:
        values = dict(told)
        values["cost"] = Cost.from_json(told["cost"])
        values["change"] = Change(told["change"])
        values["alternates"] = tuple(AlternatePlan.from_json(alternate) for alternate in told["alternates"])
        values["batches"] = tuple(PlannedBatch.from_json(batch) for batch in told["batches"])
        values["schema"] = tuple((column["name"], column["type"]) for column in told["schema"])
        values["bad_files"] = tuple((file["path"], file["reason"]) for file in told["bad_files"])
        for name in ("schema_changes", "kept_without_source", "gaps", "notes", "advice"):
            values[name] = tuple(told[name])
        if told["forecast"] is not None:
            predicted = {name: value for name, value in told["forecast"].items() if name != "average_bytes"}
            predicted["values_per_level"] = tuple(predicted["values_per_level"].items())
            values["forecast"] = Forecast(**predicted)
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Drop:
    """A table that relayout made and that is no longer declared; it goes only with `--prune`.

    `alternate` describes an alternate: whose it is, and what it was for.
    """

    table: str
    rows: int | None
    alternate: str = ""


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """Everything `apply` would do, in order."""

    tables: tuple[TablePlan, ...]
    drops: tuple[Drop, ...] = ()
    plan_id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.plan_id:
            object.__setattr__(self, "plan_id", self._digest())

    @property
    def cost(self) -> Cost:
        return Cost.total(table.cost for table in self.tables)

    @property
    def has_work(self) -> bool:
        return bool(self.drops) or any(table.has_work for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        return {"schema": PLAN_SCHEMA, "kind": "ingest-plan", "plan_id": self.plan_id, **self._content()}

    @classmethod
    def from_json(cls, told: object) -> IngestPlan:
        """The plan in a document; one that was altered, or is of another kind, is refused."""
        if not isinstance(told, Mapping) or told.get("kind") != "ingest-plan" or told.get("schema") != PLAN_SCHEMA:
            raise UsageError(
                "this is not a plan that this version understands", next="write one with `relayout plan -o plan.json`"
            )
        try:
            plan = cls(
                tuple(TablePlan.from_json(table) for table in told["tables"]),
                tuple(Drop(**drop) for drop in told["drops"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"the plan is damaged: {error!r}", next="write it again with `relayout plan -o`"
            ) from error
        if plan.plan_id != told.get("plan_id"):
            raise UsageError(
                "the plan was altered: its content does not match its plan_id",
                next="write it again with `relayout plan -o`",
            )
        return plan

    def _content(self) -> dict[str, Any]:
        return {
            "has_work": self.has_work,
            "tables": [table.to_json() for table in self.tables],
            "drops": [asdict(drop) for drop in self.drops],
            "cost": self.cost.to_json(),
        }

    def _digest(self) -> str:
        canonical = json.dumps(self._content(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def what_moved(planned: IngestPlan, present: IngestPlan) -> tuple[str, ...]:
    """What differs between a stored plan and the world in a way that matters; empty when it may run.

    Tables that the stored plan does not name are none of its business.
    """
    moved: list[str] = []
    now = {table.table: table for table in present.tables}
    for then in sorted(planned.tables, key=lambda table: table.table):
        if then.table not in now:
            moved.append(f"table {then.table} is gone in the configuration")
            continue
        moved += [f"{then.table}: {difference}" for difference in _differences(then, now[then.table])]
    if planned.drops and planned.drops != present.drops:
        moved.append("the tables that are no longer declared are others now")
    return tuple(moved)


def _differences(then: TablePlan, now: TablePlan) -> list[str]:
    if now.problem and not then.problem:
        return [f"it cannot be planned any more: {_first_line(now.problem)}"]
    if then.problem and not now.problem:
        return ["it could not be planned then, it can be now"]
    found = []
    if then.layout != now.layout:
        found.append(f"its layout was {then.layout}, it is {now.layout} now")
    elif then.change != now.change:
        found.append(f"for the table itself the plan was {then.change}, it is {now.change} now")
    if then.schema != now.schema:
        names = ", ".join(dict.fromkeys(name for name, _ in sorted({*then.schema} ^ {*now.schema})))
        found.append(f"its schema changed{f' ({names})' if names else ''}")
    if [(one.name, one.layout) for one in then.alternates] != [(one.name, one.layout) for one in now.alternates]:
        found.append("its alternates are declared otherwise now")
    planned = {batch.key: batch for batch in then.batches}
    present = {batch.key: batch for batch in now.batches}
    for key in sorted(planned.keys() | present.keys(), key=BatchKey.sort_key):
        if key not in planned:
            found.append(f"batch {key} has become pending ({present[key].reason})")
        elif key not in present:
            found.append(f"batch {key} is no longer pending")
        else:
            found += _batch_difference(planned[key], present[key])
    return found


def _batch_difference(then: PlannedBatch, now: PlannedBatch) -> list[str]:
    if then.fingerprint != now.fingerprint:
        return [f"batch {then.key}: its source files changed ({then.files} then, {now.files} now)"]
    if _fate(then) != _fate(now):
        return [f"batch {then.key}: {_fate_text(then)} then, {_fate_text(now)} now"]
    return []


def _first_line(problem: str) -> str:
    """What an error says, without the label before it."""
    return problem.splitlines()[0].removeprefix("what").strip()


def _fate(batch: PlannedBatch) -> tuple[object, ...]:
    """What a run would do to the batch, and what it would ask for first."""
    return batch.action, batch.schema_hash, batch.flags, bool(batch.blocked)


def _fate_text(batch: PlannedBatch) -> str:
    if batch.blocked:
        return f"blocked ({batch.blocked})"
    return f"{batch.action} ({batch.reason}{f', needs {batch.needs}' if batch.needs else ''})"
