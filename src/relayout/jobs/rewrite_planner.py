"""Planning a rewrite of a table: its manifests streamed once, its candidates grouped, nothing written to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from relayout.compact.candidates import OLD_SPEC, Candidate, why_rewritten
from relayout.compact.containment import Box, box_of
from relayout.compact.delete_index import DeleteIndex
from relayout.compact.filters import Match, MultiSpecFilter
from relayout.compact.options import RewriteOptions
from relayout.compact.plan import CompactPlan, FilterStats, Mode, PlanWarning, RewriteDataFilesPlanningResult
from relayout.errors import PlanRefused, UsageError
from relayout.jobs.candidate_spool import CandidateSpool
from relayout.jobs.rewrite_groups import Grouping, GroupMaker, ordered_for_jobs
from relayout.read.iceberg_expressions import predicate_of
from relayout.read.manifest_streams import PartitionTypes, live_entries, manifests_of, specs_of
from relayout.read.schema_leaves import leaves_of, required_columns
from relayout.table.bounds import column_evidence
from relayout.table.evidence import Evidence, Value
from relayout.table.live_entries import EQUALITY_DELETES, NO_COUNTS, LiveEntry, Manifest
from relayout.table.partition_keys import PartitionKey, PartitionSpec
from relayout.table.predicates import Leaf, bind
from relayout.table.transforms import source_evidence

if TYPE_CHECKING:
    from pyiceberg.table import Table

_MOST_EXAMPLES = 3
BY_FILTER, BY_STATISTICS = "filter", "statistics"
RIGHT_SIZE, TOO_FEW, CURRENT_SPEC, NOT_WRITABLE = "right size", "too few", "current spec", "spec cannot be written"
"""Why live data files are left as they are."""


class RewritePlanner:
    """Plans which files of a table are rewritten together.

    `table` is what `lake.table(...)` gives, or any PyIceberg table; `options` are named as Iceberg's action names them,
    and `partition_filter` is a condition in Spark SQL or a PyIceberg expression. Nothing is written to the table.
    """

    def __init__(
        self, table: Table, options: Mapping[str, Any] | RewriteOptions | None = None, *, name: str = ""
    ) -> None:
        self._table = table
        self._name = name or ".".join(table.name()[-2:])
        told = RewriteOptions.of(options)
        given: Any = told.partition_filter
        if given is not None and type(given).__module__.startswith("pyiceberg."):
            told = replace(told, partition_filter=predicate_of(given))
        self._options = told.sized(table.properties)

    def plan(self) -> CompactPlan:
        """The plan alone."""
        return self.plan_with_stats().plan

    def plan_with_stats(self) -> RewriteDataFilesPlanningResult:
        """The plan, and how far its filter could be judged."""
        plan = _Planning(self._table, self._name, self._options).plan()
        return RewriteDataFilesPlanningResult(plan, plan.filter_stats)


class _Planning:
    """One planning run over one snapshot."""

    def __init__(self, table: Table, name: str, options: RewriteOptions) -> None:
        self._table = table
        self._name = name
        self._options = options
        self._specs = specs_of(table)
        self._leaves = {leaf.field_id: leaf for leaf in leaves_of(table.schema())}
        self._required = required_columns(table.schema())
        self._target = self._target_spec()
        self._types = PartitionTypes()
        self._skipped: Counter[str] = Counter()
        self._keys: dict[PartitionKey, int] = {}
        self._seen: dict[tuple[int, tuple[Value, ...]], PartitionKey] = {}
        self._fail_open_files = 0
        self._filter = self._bound_filter()
        self._index = DeleteIndex({field_id: leaf.type for field_id, leaf in self._leaves.items()})
        self._boxes: dict[Box, int] = {}

    def plan(self) -> CompactPlan:
        snapshot = self._table.current_snapshot()
        grouping = Grouping()
        if snapshot is not None:
            manifests = manifests_of(self._table, snapshot, self._specs)
            self._index_deletes([manifest for manifest in manifests if manifest.holds_deletes])
            with CandidateSpool() as spool:
                for manifest in manifests:
                    if not manifest.holds_deletes:
                        self._collect(manifest, spool)
                if self._filter is not None and self._options.strict:
                    self._filter.refuse_what_is_open()
                grouping = self._group(spool)
        self._skipped[TOO_FEW] += grouping.left_files
        return CompactPlan(
            table=self._name,
            table_uuid=str(self._table.metadata.table_uuid),
            base_snapshot_id=None if snapshot is None else snapshot.snapshot_id,
            base_sequence_number=0 if snapshot is None else snapshot.sequence_number or 0,
            mode=self._options.mode,
            target_spec_id=self._target.spec_id,
            target_file_bytes=self._options.target_bytes,
            order=self._options.rewrite_job_order,
            arrangement=self._options.arrangement,
            arrange_by=self._options.arrange_by,
            where="" if self._options.partition_filter is None else str(self._options.partition_filter),
            groups=ordered_for_jobs(grouping.groups, self._options.rewrite_job_order),
            filter_stats=FilterStats() if self._filter is None else self._filter.stats(self._fail_open_files),
            warnings=tuple(self._warnings()),
            skipped=tuple(sorted((reason, count) for reason, count in self._skipped.items() if count)),
            forecast=grouping.forecast,
        )

    def _target_spec(self) -> PartitionSpec:
        wanted = self._options.output_spec_id
        spec_id = self._table.spec().spec_id if wanted is None else wanted
        if spec_id not in self._specs:
            raise UsageError(
                f"table {self._name} has no partition spec {spec_id}",
                where="target spec",
                next="it has " + ", ".join(str(known) for known in sorted(self._specs)),
            )
        target = self._specs[spec_id]
        if wanted is not None and self._options.mode is Mode.KEEP_SPEC:
            raise UsageError(
                "a target spec is for moving files to it", where="options", next="set mode to migrate as well"
            )
        problem = self._why_not_writable(target)
        if problem and self._options.mode is Mode.MIGRATE:
            raise PlanRefused(
                f"nothing can be written under spec {spec_id}: {problem}",
                where=self._name,
                next="choose another spec with --to-spec",
            )
        return target

    def _why_not_writable(self, spec: PartitionSpec) -> str:
        for item in spec.fields:
            if item.transform.name == "unknown":
                return f"the transform of its field {item.name!r} is not known"
            moves = self._options.mode is Mode.MIGRATE and item.transform.name != "void"
            if moves and item.source_id not in self._leaves:
                return f"the source column of its field {item.name!r} no longer exists"
        return ""

    def _bound_filter(self) -> MultiSpecFilter | None:
        predicate = self._options.partition_filter
        if predicate is None:
            return None
        bound = bind(predicate, tuple(self._leaves.values()), case_sensitive=self._options.case_sensitive)
        return MultiSpecFilter(bound, self._specs, self._leaves, self._required)

    def _index_deletes(self, manifests: list[Manifest]) -> None:
        every_column = frozenset(self._leaves)
        for manifest in manifests:
            spec = self._specs[manifest.spec_id]
            for entry in live_entries(self._table.io, manifest, spec, self._types, every_column):
                kept = entry if entry.equality_ids else replace(entry, counts=NO_COUNTS)
                self._index.add(kept, PartitionKey.of(spec, entry.partition))
        self._index.finish()

    def _columns(self) -> frozenset[int]:
        """Columns whose statistics are needed of data files."""
        columns = self._index.equality_columns
        if self._filter is not None:
            columns |= self._filter.columns
        if self._options.mode is Mode.MIGRATE:
            columns |= {item.source_id for item in self._target.fields}
        return columns

    def _collect(self, manifest: Manifest, spool: CandidateSpool) -> None:
        spec = self._specs[manifest.spec_id]
        options = self._options
        reason = ""
        if options.mode is Mode.MIGRATE and spec.spec_id == self._target.spec_id:
            reason = CURRENT_SPEC
        elif options.mode is Mode.KEEP_SPEC and self._why_not_writable(spec):
            reason = NOT_WRITABLE
        elif self._filter is not None and self._filter.excludes_manifest(manifest):
            reason = BY_FILTER
        if reason and manifest.files is not None:
            self._skipped[reason] += manifest.files
            return
        for entry in live_entries(self._table.io, manifest, spec, self._types, self._columns()):
            left = reason or self._consider(entry, spec, spool)
            if left:
                self._skipped[left] += 1

    def _key_of(self, entry: LiveEntry, spec: PartitionSpec) -> PartitionKey:
        """The file's key, made once per partition where equal values are the same bits."""
        if any(isinstance(value, float) for value in entry.partition):
            return PartitionKey.of(spec, entry.partition)
        told = (spec.spec_id, entry.partition)
        found = self._seen.get(told)
        if found is None:
            found = self._seen[told] = PartitionKey.of(spec, entry.partition)
        return found

    def _consider(self, entry: LiveEntry, spec: PartitionSpec, spool: CandidateSpool) -> str:
        """Take the file as a candidate, or say why it is left as it is."""
        key = self._key_of(entry, spec)
        match = ""
        if self._filter is not None:
            if not self._filter.includes(key):
                return BY_FILTER
            match = self._filter.judged_file(key, entry.counts).value
            if match == Match.CANNOT and self._options.prune_by_statistics:
                return BY_STATISTICS
        deletes = self._index.deletes_of(entry, key)
        place = self._keys.setdefault(key, len(self._keys))
        if self._options.mode is Mode.MIGRATE:
            why, bin_place = OLD_SPEC, self._box_place(entry, spec, key)
        else:
            deleted = self._index.deleted_rows(entry, deletes)
            why = why_rewritten(entry.size_bytes, entry.rows, len(deletes), deleted, self._options)
            bin_place = place
        if not why:
            return RIGHT_SIZE
        if self._filter is not None and key in self._filter.fail_open_keys:
            self._fail_open_files += 1
        spool.add(
            Candidate(
                bin_place,
                place,
                entry.data_sequence_number,
                entry.path,
                entry.format,
                entry.rows,
                entry.size_bytes,
                why,
                match,
                entry.first_row_id,
                entry.sort_order_id,
                deletes,
            )
        )
        return ""

    def _box_place(self, entry: LiveEntry, spec: PartitionSpec, key: PartitionKey) -> int:
        """The place of the box of target partitions that the file's rows go to."""
        known: dict[int, Evidence] = {}
        for item in self._target.fields:
            leaf = self._leaves.get(item.source_id)
            if leaf is None:
                continue
            told = column_evidence(entry.counts, leaf.field_id, leaf.type, required=leaf.field_id in self._required)
            known[leaf.field_id] = _with_partition(told, leaf, spec, key)
        return self._boxes.setdefault(box_of(self._target, self._leaves, known), len(self._boxes))

    def _group(self, spool: CandidateSpool) -> Grouping:
        maker = GroupMaker(
            specs=self._specs,
            leaves=self._leaves,
            types=self._types,
            keys=list(self._keys),
            deletes=self._index.deletes,
            options=self._options,
            target=self._target,
        )
        if self._options.mode is Mode.MIGRATE:
            return maker.by_containment(spool, list(self._boxes))
        return maker.by_partition(spool)

    def _warnings(self) -> Iterator[PlanWarning]:
        if self._filter is not None:
            yield from self._filter_warnings(self._filter)
        used = {key.spec_id for key in self._keys}
        for spec_id in sorted(used):
            spec = self._specs[spec_id]
            if spec.fields and spec.is_unpartitioned:
                yield PlanWarning(
                    "all-void-spec",
                    f"every field of spec {spec_id} is void; its files count as unpartitioned, as most engines have it",
                )
        if self._skipped[NOT_WRITABLE]:
            yield PlanWarning(
                "spec-not-writable",
                "files stay as they are because their spec has a transform that is not known; migrate them",
                self._skipped[NOT_WRITABLE],
            )
        narrow = sum(
            1
            for entry in self._index.deletes
            if entry.content == EQUALITY_DELETES and not self._specs[entry.spec_id].is_unpartitioned
        )
        if narrow and len(used) > 1:
            yield PlanWarning(
                "equality-deletes-across-specs",
                "equality deletes of a partitioned spec reach files of that spec only; a writer that deletes by key "
                "may have left older rows alive in files of other specs",
                narrow,
            )

    def _filter_warnings(self, given: MultiSpecFilter) -> Iterator[PlanWarning]:
        for spec_id, why in given.reasons():
            yield PlanWarning("unevaluable-spec", f"files of spec {spec_id} are included: {why}")
        errors = sorted(given.errors.items(), key=lambda item: item[0].sort_key())
        for key, problem in errors[:_MOST_EXAMPLES]:
            yield PlanWarning("evaluation-error", f"partition {key.partition} of spec {key.spec_id}: {problem}")
        if len(errors) > _MOST_EXAMPLES:
            yield PlanWarning("evaluation-error", "more partitions like these", len(errors) - _MOST_EXAMPLES)


def _with_partition(told: Evidence, leaf: Leaf, spec: PartitionSpec, key: PartitionKey) -> Evidence:
    """What statistics and the old partition say together; a tuple that cannot be evaluated says nothing."""
    with suppress(TypeError, ValueError, ArithmeticError):
        for old, value in zip(spec.fields, key.partition or (), strict=bool(key.partition)):
            if old.source_id == leaf.field_id:
                told = source_evidence(old.transform, leaf.type, value).narrowed_by(told)
    return told
