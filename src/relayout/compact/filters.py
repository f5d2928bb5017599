"""A filter on a table with any history of partition specs: each spec judges for itself, once per partition.

What a spec cannot judge is included and counted (fail-open); in strict mode such a filter is refused instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from relayout.compact.plan import FilterStats
from relayout.errors import PlanRefused, UsageError
from relayout.table.bounds import column_evidence, summary_evidence
from relayout.table.evidence import Evidence, Verdict
from relayout.table.layouts import transform_result_type
from relayout.table.live_entries import ColumnCounts, Manifest
from relayout.table.partition_keys import PartitionKey, PartitionSpec
from relayout.table.predicates import Bound, Leaf, field_ids, judge, known_of
from relayout.table.transforms import source_evidence


class Match(StrEnum):
    """What is known of a file's rows and the filter; `unknown` is what could not be judged at all."""

    MUST = "must"
    MIGHT = "might"
    CANNOT = "cannot"
    UNKNOWN = "unknown"


_MATCHES = {Verdict.MUST: Match.MUST, Verdict.MIGHT: Match.MIGHT, Verdict.CANNOT: Match.CANNOT}


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a partition says; `known` is kept for judging its files more finely."""

    match: Match
    known: Mapping[int, Evidence]


@dataclass(slots=True)
class MultiSpecFilter:
    """A bound filter over all specs of a table; `leaves` are the columns of the current schema by id."""

    bound: Bound
    specs: Mapping[int, PartitionSpec]
    leaves: Mapping[int, Leaf]
    required: frozenset[int] = frozenset()
    unevaluable: frozenset[int] = frozenset()
    fail_open_keys: set[PartitionKey] = field(default_factory=set)
    errors: dict[PartitionKey, str] = field(default_factory=dict)
    _judged: dict[PartitionKey, _Judged] = field(default_factory=dict)

    def __post_init__(self) -> None:
        asked = field_ids(self.bound)
        self.unevaluable = frozenset(
            spec.spec_id for spec in self.specs.values() if _why_unevaluable(spec, self.leaves, asked)
        )

    @property
    def columns(self) -> frozenset[int]:
        """The columns whose statistics can sharpen a verdict."""
        return field_ids(self.bound)

    def includes(self, key: PartitionKey) -> bool:
        """Whether files of this partition may hold matching rows, or nobody can tell."""
        return self.judged(key) is not Match.CANNOT

    def judged(self, key: PartitionKey) -> Match:
        """The verdict on a partition, made once; an unpartitioned spec says nothing, which is not failing open."""
        found = self._judged.get(key)
        if found is None:
            found = self._judged[key] = self._judge(key)
            if found.match is Match.UNKNOWN:
                self.fail_open_keys.add(key)
        return found.match

    def judged_file(self, key: PartitionKey, counts: ColumnCounts) -> Match:
        """The verdict on one file, by its partition and its statistics together."""
        partition = self.judged(key)
        if partition in (Match.MUST, Match.CANNOT):
            return partition
        known = dict(self._judged[key].known)
        for field_id in self.columns:
            told = column_evidence(counts, field_id, self.leaves[field_id].type, required=field_id in self.required)
            known[field_id] = told.narrowed_by(known[field_id]) if field_id in known else told
        by_file = _MATCHES[judge(self.bound, known_of(known))]
        return partition if by_file is Match.MIGHT else by_file

    def excludes_manifest(self, manifest: Manifest) -> bool:
        """Whether its summaries rule out that any file in it matches."""
        spec = self.specs[manifest.spec_id]
        if spec.spec_id in self.unevaluable or spec.is_unpartitioned or len(manifest.summaries) != len(spec.fields):
            return False
        known: dict[int, Evidence] = {}
        for item, summary in zip(spec.fields, manifest.summaries, strict=True):
            leaf = self.leaves.get(item.source_id)
            if leaf is None or item.transform.name in ("void", "unknown"):
                continue
            result = transform_result_type(str(item.transform), leaf.type)
            told = summary_evidence(summary, item.transform, leaf.type, result)
            known[leaf.field_id] = told.narrowed_by(known[leaf.field_id]) if leaf.field_id in known else told
        return judge(self.bound, known_of(known)) is Verdict.CANNOT

    def reasons(self) -> list[tuple[int, str]]:
        """The specs that the filter cannot be judged for, and why."""
        return [
            (spec_id, _why_unevaluable(self.specs[spec_id], self.leaves, self.columns))
            for spec_id in sorted(self.unevaluable)
        ]

    def stats(self, fail_open_files: int) -> FilterStats:
        return FilterStats(len(self.unevaluable), len(self.errors), len(self.fail_open_keys), fail_open_files)

    def refuse_what_is_open(self) -> None:
        """Strict mode: a filter that fails open somewhere is not followed anywhere."""
        met = {key.spec_id for key in self.fail_open_keys}
        reasons = [f"spec {spec_id}: {why}" for spec_id, why in self.reasons() if spec_id in met]
        reasons += [
            f"partition {key.partition} of spec {key.spec_id}: {problem}"
            for key, problem in sorted(self.errors.items(), key=lambda item: item[0].sort_key())
        ]
        if reasons:
            shown = reasons[:5] + ([f"and {len(reasons) - 5} more"] if len(reasons) > 5 else [])
            raise PlanRefused(
                "the filter cannot be judged for every file: " + "; ".join(shown),
                where="strict mode",
                next="plan without strict to include these files, or migrate them to the current spec first",
            )

    def _judge(self, key: PartitionKey) -> _Judged:
        spec = self.specs[key.spec_id]
        if key.spec_id in self.unevaluable:
            return _Judged(Match.UNKNOWN, {})
        if key.partition is None:
            return _Judged(Match.MIGHT, {})
        try:
            known = self._known(spec, key.partition)
            return _Judged(_MATCHES[judge(self.bound, known_of(known))], known)
        except (TypeError, ValueError, ArithmeticError, IndexError, AttributeError) as problem:
            self.errors[key] = str(problem) or type(problem).__name__
            return _Judged(Match.UNKNOWN, {})

    def _known(self, spec: PartitionSpec, partition: tuple[object, ...]) -> dict[int, Evidence]:
        known: dict[int, Evidence] = {}
        for item, value in zip(spec.fields, partition, strict=True):
            leaf = self.leaves.get(item.source_id)
            if leaf is None:
                continue
            told = source_evidence(item.transform, leaf.type, value)
            known[leaf.field_id] = told.narrowed_by(known[leaf.field_id]) if leaf.field_id in known else told
        return known


def _why_unevaluable(spec: PartitionSpec, leaves: Mapping[int, Leaf], asked: frozenset[int]) -> str:
    """Why the filter cannot be projected onto this spec, or nothing."""
    for item in spec.fields:
        if item.transform.name == "void":
            continue
        leaf = leaves.get(item.source_id)
        if leaf is None:
            return f"the source column of its field {item.name!r} no longer exists"
        if item.transform.name == "unknown":
            if item.source_id in asked:
                return f"the transform of its field {item.name!r} is not known"
            continue
        try:
            transform_result_type(str(item.transform), leaf.type)
        except UsageError:
            return f"its field {item.name!r} is {item.transform} of a column that is {leaf.type} now"
    return ""
