"""Which layouts would answer a query and why, and running one query under conditions of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.alternates.choice import Explanation
from relayout.commit.statements import refused, use_namespace
from relayout.config import Config
from relayout.errors import NotRouted, UsageError
from relayout.jobs.alternates.cascade import run_followed
from relayout.jobs.progress import Listener
from relayout.spark.jvm.routing import decide_now, told_choice
from relayout.spark.session import ROUTING, ROUTING_LAYOUT, set_for_now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Route:
    """What is asked of routing for one query; `layout` is a table of an alternate, its declared name, or `base`."""

    allowed: bool = True
    required: bool = False
    layout: str = ""

    def __post_init__(self) -> None:
        if not self.allowed and (self.required or self.layout):
            raise UsageError("a query cannot be routed and not be routed", next="choose one of the options")

    @property
    def settings(self) -> dict[str, str]:
        told = {}
        if not self.allowed:
            told[ROUTING] = "off"
        elif self.required:
            told[ROUTING] = "require"
        if self.layout:
            told[ROUTING_LAYOUT] = self.layout
        return told


def explain(spark: SparkSession, config: Config, query: str | DataFrame, route: Route | None = None) -> Explanation:
    """What would be chosen for a statement or a DataFrame; nothing is run."""
    from pyspark.errors import PySparkException

    text = query if isinstance(query, str) else "a DataFrame"
    use_namespace(spark, config.catalog.name, config.namespace)
    try:
        with set_for_now(spark, (route or Route()).settings):
            told = told_choice(query, spark)
    except PySparkException as error:
        raise refused(error, text) from error
    return Explanation.from_told(text, told, f"{config.catalog.name}.{config.namespace}.")


def run_routed(spark: SparkSession, config: Config, text: str, route: Route, listener: Listener) -> DataFrame:
    """The prepared query, its layouts chosen now and under these conditions; NotRouted when they cannot be met."""
    if route.required:
        explained = explain(spark, config, text, route)
        if explained.writes:
            raise UsageError(
                "a statement that writes is never routed", where=text[:200], next="leave --require-route out"
            )
        if not explained.relations or not explained.routed:
            raise _unmet(text, "; ".join(_reasons(explained)) or "no table of the query has alternates")
    with set_for_now(spark, route.settings):
        frame = run_followed(spark, config, text, listener)
        unmet = decide_now(frame, spark)
    if unmet:
        raise _unmet(text, unmet)
    return frame


def _unmet(text: str, why: str) -> NotRouted:
    return NotRouted(
        f"the query is not routed as asked: {why}",
        where=" ".join(text.split())[:200],
        next="`relayout explain` shows every layout with its reason",
    )


def _reasons(explained: Explanation) -> list[str]:
    return [
        f"{relation.table}: "
        + ", ".join(f"{layout.name or layout.layout} {layout.code}" for layout in relation.layouts)
        for relation in explained.relations
        if not relation.routed
    ]
