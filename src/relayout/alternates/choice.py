"""Which layout answers a query, and why the others do not: what `relayout explain` tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from relayout.table.batches import BatchKey


class Code(StrEnum):
    """Why a layout is used or not; those from WRITE on stand at a base that no alternate may replace."""

    CHOSEN = "CHOSEN"
    MORE_BYTES = "MORE_BYTES"
    STALE = "STALE"
    NO_COLUMN = "NO_COLUMN"
    OTHER_TYPE = "OTHER_TYPE"
    NO_FILTER = "NO_FILTER"
    TOO_MANY_BATCHES = "TOO_MANY_BATCHES"
    BATCH_COLUMN = "BATCH_COLUMN"
    BUDGET = "BUDGET"
    OTHER_LAYOUT_ASKED = "OTHER_LAYOUT_ASKED"
    MISSING = "MISSING"
    NOT_ITS_ALTERNATE = "NOT_ITS_ALTERNATE"
    UNREADABLE = "UNREADABLE"
    WRITE = "WRITE"
    NO_ALTERNATES = "NO_ALTERNATES"
    METADATA_TABLE = "METADATA_TABLE"
    METADATA_COLUMN = "METADATA_COLUMN"
    FILE_NAME = "FILE_NAME"
    SAMPLE = "SAMPLE"
    BRANCH = "BRANCH"
    READ_OPTIONS = "READ_OPTIONS"
    NO_CATALOG = "NO_CATALOG"
    EMPTY = "EMPTY"
    SWITCHED_OFF = "SWITCHED_OFF"


MEANINGS: Mapping[Code, str] = {
    Code.CHOSEN: "serves the query",
    Code.MORE_BYTES: "would read more, or as much",
    Code.STALE: "holds nothing that is proven to be the base's rows at this snapshot",
    Code.NO_COLUMN: "lacks a column that the query uses",
    Code.OTHER_TYPE: "has a column that the query uses in another type",
    Code.NO_FILTER: "the query names no rows to leave out, so there is nothing to gain for sure",
    Code.TOO_MANY_BATCHES: "too many batches would have to come from the base",
    Code.BATCH_COLUMN: "stale batches cannot be told apart by a condition",
    Code.BUDGET: "how much it reads was not known in time",
    Code.OTHER_LAYOUT_ASKED: "another layout was asked for",
    Code.MISSING: "is named by the base but is not there",
    Code.NOT_ITS_ALTERNATE: "belongs to another table",
    Code.UNREADABLE: "could not be examined; the log says why",
    Code.WRITE: "statements that write read the base",
    Code.NO_ALTERNATES: "has no alternates",
    Code.METADATA_TABLE: "is a metadata table",
    Code.METADATA_COLUMN: "the query asks for files or positions, which only the base has",
    Code.FILE_NAME: "the query asks for names of files, which only the base has",
    Code.SAMPLE: "a sample is taken of the base's own files",
    Code.BRANCH: "a branch is read",
    Code.READ_OPTIONS: "the reader's options decide what is read",
    Code.NO_CATALOG: "is not read through a catalog",
    Code.EMPTY: "has no snapshot",
    Code.SWITCHED_OFF: "routing is switched off",
}


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """One layout for one table of a query.

    `layout` is `base` or the alternate's table, `name` how it was declared. `freshness` is fresh, partly, stale or
    unknown; `batches` are those that must come from the base, or, if `only`, the only ones that need not. Figures are
    those of its file plan, the base's share included; None where none was made.
    """

    layout: str
    name: str
    freshness: str
    code: Code
    files: int | None
    size_bytes: int | None
    cost: int | None
    batches: tuple[BatchKey, ...] = ()
    only: bool = False

    @classmethod
    def from_told(cls, told: Mapping[str, Any]) -> LayoutChoice:
        """From what the rule in the JVM says."""
        return cls(
            layout=told["layout"],
            name=told["name"],
            freshness=told["freshness"],
            code=Code(told["code"]),
            files=told["files"],
            size_bytes=told["bytes"],
            cost=told["cost"],
            batches=tuple(BatchKey(tuple(key.items())) for key in told["batches"]),
            only=told["only"],
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "layout": self.layout,
            "name": self.name,
            "freshness": self.freshness,
            "code": self.code.value,
            "reason": MEANINGS[self.code],
            "files": self.files,
            "bytes": self.size_bytes,
            "cost": self.cost,
            "fresh_batches" if self.only else "stale_batches": [dict(key.items) for key in self.batches],
        }


@dataclass(frozen=True, slots=True)
class RelationChoice:
    """One table of a query: what is asked of it, and every layout that was considered."""

    table: str
    snapshot_id: int | None
    filter: str
    chosen: str
    hybrid: bool
    choice_ms: float
    layouts: tuple[LayoutChoice, ...]

    @property
    def routed(self) -> bool:
        return self.chosen != "base"

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "filter": self.filter,
            "chosen": self.chosen,
            "hybrid": self.hybrid,
            "choice_ms": self.choice_ms,
            "layouts": [layout.to_json() for layout in self.layouts],
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """A query's tables in the order in which they were looked at; subqueries come first."""

    statement: str
    writes: bool
    relations: tuple[RelationChoice, ...]
    failures: tuple[str, ...] = ()

    @classmethod
    def from_told(cls, statement: str, told: Mapping[str, Any], home: str) -> Explanation:
        """From what the rule in the JVM says; table names lose the prefix `home`."""
        tables = [entry for entry in told["relations"] if "table" in entry]
        return cls(
            statement=statement,
            writes=told["command"],
            relations=tuple(
                RelationChoice(
                    table=entry["table"].removeprefix(home),
                    snapshot_id=entry["snapshot_id"],
                    filter=entry["filter"],
                    chosen=entry["chosen"],
                    hybrid=entry["hybrid"],
                    choice_ms=entry["micros"] / 1000,
                    layouts=tuple(LayoutChoice.from_told(layout) for layout in entry["layouts"]),
                )
                for entry in tables
            ),
            failures=tuple(entry["failed"] for entry in told["relations"] if "failed" in entry),
        )

    @property
    def routed(self) -> bool:
        """Whether every table that has alternates is served by one, and there is such a table."""
        able = [relation for relation in self.relations if not _alone(relation)]
        return bool(able) and all(relation.routed for relation in able)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kind": "explain",
            "statement": self.statement,
            "writes": self.writes,
            "routed": self.routed,
            "relations": [relation.to_json() for relation in self.relations],
            "failures": list(self.failures),
        }


def _alone(relation: RelationChoice) -> bool:
    return [layout.code for layout in relation.layouts] in ([Code.NO_ALTERNATES], [Code.METADATA_TABLE])
