"""`relayout compact` and `optimize`: what the plan says, in waves; only groups that others changed are done again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from relayout.commit.failpoints import passing
from relayout.commit.left_files import delete_own_files
from relayout.commit.rewrite_receipts import GroupOutcome, GroupReceipt, RewriteReceipt
from relayout.commit.rewrites import Landed, Replacement, RewriteBase, RewritePublisher
from relayout.commit.scratch import scratch_folder, scratch_of_run
from relayout.compact.members import files_of
from relayout.compact.plan import Arrangement, CompactPlan, FileGroup, Mode
from relayout.compact.run.by_spark import rewrite_by_spark
from relayout.compact.run.waves import GroupResult, HowToRewrite, rewrite_wave, waves_of
from relayout.config import Config
from relayout.errors import PlanRefused, PlanStale
from relayout.jobs.arranging import curve_of, sort_terms
from relayout.jobs.compact_plan import plan_compaction
from relayout.jobs.progress import Level, Listener
from relayout.kernels.columns import group_columns, identity_constants, unsupported_types, with_lineage
from relayout.kernels.target import target_for
from relayout.read.catalog import CatalogReader
from relayout.read.dead_deletes import dead_deletes
from relayout.read.tables import facts_of
from relayout.spark.jvm.iceberg import JavaTable
from relayout.table.names import TableName, parse
from relayout.table.types import text_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

    from relayout.kernels.rewrite import Constants
    from relayout.kernels.write import Target
    from relayout.table.rewrites import PlannedFile

ENCRYPTION_KEY = "encryption.key-id"

ROUNDS = 4
"""How often groups are planned again because others changed their files meanwhile."""


def compact_table(
    config: Config, session: Callable[[], SparkSession], table: str, options: Mapping[str, Any], listener: Listener
) -> RewriteReceipt:
    """Plan and rewrite a table; a session is started only when something is to be done."""
    name = parse(table, config.namespace, config.catalog.name)
    plan = planned(config, table, options)
    if not plan.has_work and not _has_dead_deletes(config, name):
        return RewriteReceipt(str(name), plan.plan_id, "", (), (), 0, 0.0)
    return compact(session(), config, name, plan, lambda: planned(config, table, options), listener)


def planned(config: Config, table: str, options: Mapping[str, Any]) -> CompactPlan:
    """The plan, after a look at whether rows can be ordered as it says."""
    plan = plan_compaction(config, table, options)
    native = CatalogReader(config).load(parse(table, config.namespace, config.catalog.name))
    if native is not None:
        name = parse(table, config.namespace, config.catalog.name)
        curve_of(plan.arrangement, plan.arrange_by, facts_of(native, name).schema)
    return plan


def _has_dead_deletes(config: Config, name: TableName) -> bool:
    native = CatalogReader(config).load(name)
    return native is not None and bool(dead_deletes(native))


def compact(
    spark: SparkSession,
    config: Config,
    name: TableName,
    plan: CompactPlan,
    plan_again: Callable[[], CompactPlan],
    listener: Listener,
) -> RewriteReceipt:
    """Do what the plan says, and what a plan made later says of the groups that others changed meanwhile."""
    return _Compaction(spark, config, name, plan, listener).run(plan_again)


class _Compaction:
    """One run over one table."""

    def __init__(
        self, spark: SparkSession, config: Config, name: TableName, plan: CompactPlan, listener: Listener
    ) -> None:
        self._spark = spark
        self._config = config
        self._name = name
        self._plan = plan
        self._listener = listener
        self._run_id = uuid.uuid4().hex[:16]
        self._reader = CatalogReader(config)
        self._publisher = RewritePublisher(spark, config, name, plan.plan_id, self._run_id)
        self._receipts: list[GroupReceipt] = []
        self._snapshots: list[int] = []

    def run(self, plan_again: Callable[[], CompactPlan]) -> RewriteReceipt:
        begun = time.monotonic()
        dead = 0
        native = self._same_table()
        _refuse_what_only_spark_writes(native, self._name)
        place = JavaTable(self._spark, self._name.spark_sql(self._config.catalog.name)).data_location()
        plan = self._plan
        with scratch_of_run(place, self._run_id):
            passing("run-begins")
            for attempt in range(ROUNDS):
                changed = self._pass(plan, native, place, last=attempt + 1 == ROUNDS)
                if not changed:
                    break
                native = self._same_table()
                plan = _only(plan_again(), changed)
            dead = self._drop_dead_deletes()
            passing("run-ends")
        seconds = time.monotonic() - begun
        return RewriteReceipt(
            str(self._name),
            self._plan.plan_id,
            self._run_id,
            tuple(self._receipts),
            tuple(self._snapshots),
            dead,
            seconds,
        )

    def _same_table(self) -> Table:
        native = self._reader.load(self._name)
        if native is None or str(native.metadata.table_uuid) != self._plan.table_uuid:
            raise PlanStale(
                f"{self._name} is not the table that was planned",
                where=f"plan {self._plan.plan_id}",
                next="plan again with `relayout compact TABLE --dry-run`",
            )
        return native

    def _pass(self, plan: CompactPlan, native: Table, place: str, *, last: bool) -> frozenset[str]:
        """Rewrite and commit all groups; returns the data files of those that others changed meanwhile."""
        if plan.base_snapshot_id is None or not plan.groups:
            return frozenset()
        base = RewriteBase(plan.base_snapshot_id, plan.base_sequence_number, plan.mode is Mode.MIGRATE)
        how = self._how(plan, native, place)
        changed: set[str] = set()
        done = 0
        for wave in waves_of(plan.groups):
            self._listener.advance(str(self._name), done, len(plan.groups))
            results = [
                self._by_spark(result, how, base) if result.cannot else result
                for result in rewrite_wave(self._spark, wave, how)
            ]
            passing("files-written")
            changed |= self._publish(results, base, last=last)
            done += len(wave)
        self._listener.advance(str(self._name), done, len(plan.groups))
        return frozenset(changed)

    def _by_spark(self, result: GroupResult, how: HowToRewrite, base: RewriteBase) -> GroupResult:
        self._delete(result.left)
        self._listener.line(Level.INFO, f"{self._name}: group {result.group.group_id} goes by Spark: {result.cannot}")
        full_name = self._name.spark_sql(self._config.catalog.name)
        return rewrite_by_spark(self._spark, result, how, full_name, base.snapshot_id)

    def _how(self, plan: CompactPlan, native: Table, place: str) -> HowToRewrite:
        facts = facts_of(native, self._name)
        columns = group_columns(native)
        types = {field.field_id: text_of(field.field_type) for field in native.schema().fields}
        specs = {spec.spec_id: spec for spec in facts.specs}
        curve = curve_of(plan.arrangement, plan.arrange_by, facts.schema)
        order = sort_terms(plan.arrange_by, facts.schema) if plan.arrangement is Arrangement.SORT else ()
        targets: dict[int, Target] = {}

        def target_of(group: FileGroup, first: PlannedFile) -> Target:
            spec_id = group.output_spec_id
            if spec_id not in targets:
                target = target_for(
                    facts,
                    native.schema(),
                    data_location=place,
                    scratch=str(scratch_folder(place, self._run_id)),
                    file_prefix=self._run_id,
                    batch_columns=(),
                    target_file_bytes=plan.target_file_bytes,
                    store=dict(self._config.catalog.properties),
                    spec=specs[spec_id],
                )
                if order:
                    target = replace(target, order_by=order)
                targets[spec_id] = with_lineage(target) if columns.lineage else target
            if plan.mode is Mode.MIGRATE:
                return targets[spec_id]
            return replace(targets[spec_id], partition=tuple(first.content["partition"]))

        def constants_of(file: PlannedFile) -> Constants:
            return identity_constants(native, file.content["partition"], int(file.content["spec-id"]), types)

        return HowToRewrite(
            columns,
            target_of,
            constants_of,
            curve,
            self._config.spark.task_memory_bytes,
            splits=plan.mode is Mode.KEEP_SPEC,
        )

    def _publish(self, results: Sequence[GroupResult], base: RewriteBase, *, last: bool) -> set[str]:
        for result in results:
            if result.error:
                self._delete(result.left)
                self._receipt(result, GroupOutcome.FAILED, None, result.error)
        ready = {result.group.group_id: result for result in results if not result.error}
        if not ready:
            return set()
        landed: Landed = self._publisher.publish([_replacement(result) for result in ready.values()], base)
        if landed.snapshot_id is not None:
            self._snapshots.append(landed.snapshot_id)
        for group in landed.groups:
            self._receipt(ready[group.group_id], GroupOutcome.DONE, landed.snapshot_id, "")
        changed: set[str] = set()
        for group in landed.conflicts:
            self._delete([str(file["file-path"]) for file in group.added])
            changed |= group.paths
            if last:
                self._receipt(ready[group.group_id], GroupOutcome.CONFLICT, None, "others changed its files meanwhile")
        if changed:
            self._listener.line(Level.WARNING, f"{self._name}: {len(landed.conflicts)} groups changed meanwhile")
        return changed

    def _delete(self, paths: Sequence[str]) -> None:
        delete_own_files(paths, dict(self._config.catalog.properties))

    def _receipt(self, result: GroupResult, outcome: GroupOutcome, snapshot_id: int | None, note: str) -> None:
        group = result.group
        receipt = GroupReceipt(
            spec_id=group.spec_id,
            partition=group.partition,
            outcome=outcome,
            engine=result.engine,
            files_before=group.input_files,
            files_after=len(result.outputs),
            bytes_before=group.input_bytes,
            bytes_after=sum(int(file["file-size-in-bytes"]) for file in result.outputs),
            rows=result.rows,
            deleted_rows=result.deleted,
            snapshot_id=snapshot_id,
            note=note,
        )
        self._receipts.append(receipt)

    def _drop_dead_deletes(self) -> int:
        """Take out delete files that nothing needs any more; if others change the table meanwhile, they wait."""
        native = self._same_table()
        current = native.current_snapshot()
        dead = dead_deletes(native) if current is not None else []
        if not dead or current is None:
            return 0
        base = RewriteBase(current.snapshot_id, current.sequence_number or 0, moves=False)
        landed = self._publisher.publish([Replacement(0, (), tuple(dead), ())], base)
        if landed.snapshot_id is None:
            return 0
        self._snapshots.append(landed.snapshot_id)
        return len(dead)


def _refuse_what_only_spark_writes(native: Table, name: TableName) -> None:
    """Types that kernels would write in another form than Iceberg means, and encrypted tables."""
    found = unsupported_types(native.schema().as_struct())
    if ENCRYPTION_KEY in native.properties:
        found.add("encryption")
    if found:
        raise PlanRefused(
            f"files of {name} are written by Iceberg alone: {', '.join(sorted(found))}",
            where=str(name),
            next=f"CALL system.rewrite_data_files(table => '{name}') in Spark does it",
        )


def _replacement(result: GroupResult) -> Replacement:
    """Deletes that name one of the group's files, and so no other, go with it."""
    paths = {file.path for file in result.files.data}
    own = [delete.content for delete in result.files.deletes if delete.content.get("referenced-data-file") in paths]
    return Replacement(
        result.group.group_id, tuple(file.content for file in result.files.data), tuple(own), result.outputs
    )


def _only(plan: CompactPlan, paths: frozenset[str]) -> CompactPlan:
    """The groups of a later plan that hold any of these files."""
    groups = [group for group in plan.groups if any(file.path in paths for file in files_of(group).data)]
    return replace(plan, groups=tuple(groups), plan_id="")
