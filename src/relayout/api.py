"""The Python door: `relayout.open(...)` gives a `Lake` with one short method per verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from relayout.config import Config
from relayout.errors import MissingError, PlanStale
from relayout.ingest.plan import IngestPlan
from relayout.jobs.plan import PlannedWork, Planner
from relayout.jobs.progress import Listener, Silence
from relayout.table.names import parse

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable
    from pyspark.sql import DataFrame, SparkSession

    from relayout.alternates.choice import Explanation
    from relayout.commit.receipts import Receipt
    from relayout.commit.rewrite_receipts import RewriteReceipt
    from relayout.compact.plan import CompactPlan
    from relayout.compact.skipping import Skipping
    from relayout.jobs.apply import ApplyOptions
    from relayout.jobs.invalidate import Invalidation
    from relayout.jobs.rollback import Rollback
    from relayout.jobs.verify import TableCheck
    from relayout.table.schemas import TableSchema
    from relayout.upkeep.lake_status import LakeStatus


def open(source: str | PathLike[str] | Mapping[str, Any], spark: SparkSession | None = None) -> Lake:
    """A lake from a configuration file, a folder that holds `relayout.yaml`, or a mapping of the same shape.

    A session that is given is used as it is; otherwise one is started when the first verb needs it.
    """
    from relayout.config import from_mapping, load

    config = from_mapping(source) if isinstance(source, Mapping) else load(str(source))
    return Lake(config, spark)


def attach(spark: SparkSession) -> None:
    """Route the queries of a session that runs; nothing else about it changes."""
    from relayout.spark.session import attach_session

    attach_session(spark)


class Lake:
    """Declared tables, their sources and the catalog they live in."""

    def __init__(self, config: Config, spark: SparkSession | None = None) -> None:
        self.config = config
        self._given = spark
        self._session: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The Spark session with the configured catalog; started when it is first asked for."""
        if self._session is None:
            from relayout.spark.session import adopt_session, start_session

            self._session = adopt_session(self._given, self.config) if self._given else start_session(self.config)
        return self._session

    def plan(self, tables: Sequence[str] = ()) -> IngestPlan:
        """What `apply` would do; writes nothing."""
        return self._planner().plan(tables).plan

    def apply(
        self,
        plan: IngestPlan | None = None,
        *,
        tables: Sequence[str] = (),
        prune: bool = False,
        overwrite_edits: bool = False,
        listener: Listener | None = None,
    ) -> Receipt:
        """Do what the plan says, or what a plan made now would say; PlanStale when the given one no longer holds."""
        from relayout.jobs.apply import ApplyOptions

        planner = self._planner()
        work = planner.plan(tables) if plan is None else self._same_work(planner, plan)
        return self._applied(planner, work, ApplyOptions(prune, overwrite_edits), listener)

    def retry(self, tables: Sequence[str] = (), *, listener: Listener | None = None) -> Receipt:
        """Load the batches whose last attempt failed, and nothing else."""
        from relayout.jobs.apply import ApplyOptions

        planner = self._planner()
        return self._applied(planner, planner.plan(tables), ApplyOptions(only_failed=True), listener)

    def sql(
        self,
        text: str,
        *,
        route: bool = True,
        require_route: bool = False,
        layout: str | None = None,
        listener: Listener | None = None,
    ) -> DataFrame:
        """Run a query, DML or DDL; bare table names mean the configured namespace, and alternates follow changes.

        With one of the options the layouts are chosen when this is called: none but the base's, one for every table
        that has alternates (else NotRouted), or the named one.
        """
        from relayout.commit.tables import prepare_embedded_catalog
        from relayout.jobs.alternates.cascade import run_followed
        from relayout.jobs.explain import Route, run_routed

        prepare_embedded_catalog(self.config)
        asked = Route(route, require_route, layout or "")
        if asked != Route():
            return run_routed(self.spark, self.config, text, asked, listener or Silence())
        return run_followed(self.spark, self.config, text, listener or Silence())

    def rollback(self, table: str, to: int, *, listener: Listener | None = None) -> Rollback:
        """Make an older snapshot of a table the current one; its alternates follow."""
        from relayout.jobs.rollback import roll_back

        return roll_back(self.spark, self.config, table, to, listener or Silence())

    def explain(self, query: str | DataFrame) -> Explanation:
        """Every layout that could answer the query, with what it would read and why it does or does not serve."""
        from relayout.jobs.explain import explain

        return explain(self.spark, self.config, query)

    def keep_routing_counts(self) -> None:
        """Write down how often alternates were considered, matched and used by this session's queries until now."""
        if self._session is None:
            return
        from relayout.jobs.routing_counts import keep_counts

        keep_counts(self._session, self.config)

    def status(self, tables: Sequence[str] = ()) -> LakeStatus:
        """How the tables are: layout, files, health, ledger."""
        from relayout.jobs.status import read_status

        self.keep_routing_counts()
        return read_status(self.config, tables)

    def table(self, name: str) -> IcebergTable:
        """A table through PyIceberg, as it is now."""
        from relayout.read.catalog import CatalogReader

        wanted = parse(name, self.config.namespace, self.config.catalog.name)
        native = CatalogReader(self.config).load(wanted)
        if native is None:
            raise MissingError(
                f"there is no table {wanted}", where=self.config.catalog.name, next="`relayout status` lists the tables"
            )
        return native

    def plan_compact(self, table: str, **options: Any) -> CompactPlan:
        """What compacting a table would do; options are those of `RewritePlanner`, `where` among them."""
        from relayout.jobs.compact import planned

        return planned(self.config, table, options)

    def compact(self, table: str, *, listener: Listener | None = None, **options: Any) -> RewriteReceipt:
        """Rewrite what `plan_compact` with the same options shows."""
        from relayout.jobs.compact import compact_table

        return compact_table(self.config, lambda: self.spark, table, options, listener or Silence())

    def optimize(
        self, table: str, arrangement: str, by: Sequence[str], *, listener: Listener | None = None, **options: Any
    ) -> RewriteReceipt:
        """Merge files and lay rows out by these columns; `arrangement` is `zorder`, `hilbert` or `sort`."""
        from relayout.jobs.arranging import arranged

        return self.compact(table, listener=listener, **{**arranged(arrangement, by), **options})

    def verify(self, table: str) -> TableCheck:
        """Compare a table's metadata with its files, and its rows with those of its alternates."""
        from relayout.jobs.verify import verify_table

        return verify_table(self.config, lambda: self.spark, table)

    def skipping(self, table: str, conditions: Sequence[str]) -> tuple[Skipping, ...]:
        """Which share of a table's bytes queries with these conditions need not read, as it is laid out now."""
        from relayout.jobs.skipping import skipping_of

        return skipping_of(self.table(table), conditions)

    def invalidate(self, table: str, batches: Sequence[str] = (), *, dry_run: bool = False) -> Invalidation:
        """Mark loaded batches as not done, so that the next `apply` loads them again; their rows stay until then."""
        from relayout.jobs.invalidate import invalidate, plan_invalidation

        planned = plan_invalidation(self.config, table, batches)
        if not dry_run and planned.batches:
            invalidate(self.spark, self.config, planned)
        return planned

    def _planner(self) -> Planner:
        return Planner(self.config, self._types_of)

    def _types_of(self, schema: TableSchema, expressions: Mapping[str, str]) -> dict[str, str]:
        from relayout.spark.expressions import types_of

        return types_of(self.spark, schema, expressions)

    def _same_work(self, planner: Planner, plan: IngestPlan) -> PlannedWork:
        """The work behind a stored plan, if the world is still the one it was made for."""
        from relayout.jobs.apply import refuse_if_moved

        declared = {name for name, table in self.config.tables.items() if table.source or table.alternates}
        gone = [table.table for table in plan.tables if table.table not in declared]
        if gone:
            raise PlanStale(
                f"no longer declared: {', '.join(gone)}",
                where=f"plan {plan.plan_id}",
                next="make a new plan with `relayout plan -o plan.json`",
            )
        present = planner.plan_again(plan)
        refuse_if_moved(plan, present.plan)
        return replace(present, plan=plan)

    def _applied(
        self, planner: Planner, work: PlannedWork, options: ApplyOptions, listener: Listener | None
    ) -> Receipt:
        from relayout.jobs.apply import Apply, nothing_done, runs_anything
        from relayout.spark.jvm.routing import forget_freshness

        if not runs_anything(work, options):
            return nothing_done(work, options)
        receipt = Apply(self.spark, self.config, planner, options, listener or Silence()).run(work)
        forget_freshness(self.spark)
        self.keep_routing_counts()
        return receipt
