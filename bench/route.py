"""A workload of mixed queries on a table with alternates: routed and not, and whether the choices were the best."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.many_files import choice_ms
from bench.places import fresh_folder
from bench.results import Result
from bench.sides.lakes import lake_in
from bench.workload import Observations
from relayout.api import Lake
from relayout.spark.jvm.routing import taken_choices

FULL = Observations(years=10, rows_per_year=2_000_000, places=3_200)
SMALL = Observations(years=4, rows_per_year=100_000, places=3_200)
QUERIES = 200
MANY_FILES = 100_000
ROUNDS = 2
WARM_UP = 5
OPEN_COST = 4 << 20
PEER = "Spark reading the base table (routing switched off)"


@dataclass(frozen=True, slots=True)
class Timed:
    """One query: seconds both ways, what every layout's scan reads, and who served."""

    query: str
    routed: float
    unrouted: float
    chosen: str
    bytes_by_layout: Mapping[str, int]
    cost_by_layout: Mapping[str, int]

    @property
    def least_cost(self) -> bool:
        return self.cost_by_layout[self.chosen] == min(self.cost_by_layout.values())

    @property
    def least_bytes(self) -> bool:
        return self.bytes_by_layout[self.chosen] == min(self.bytes_by_layout.values())

    @property
    def slower(self) -> bool:
        return self.routed > 1.15 * self.unrouted + 0.03


def route_workload(small: bool) -> Result:
    """Queries that each layout answers best in turn."""
    source = SMALL if small else FULL
    source.write()
    with fresh_folder("route") as folder:
        lake = lake_in(folder, {"observations": source.declared()})
        begun = time.perf_counter()
        receipt = lake.apply()
        built = time.perf_counter() - begun
        assert receipt.complete, receipt.to_json()
        files = int(lake.table("observations").current_snapshot().summary["total-data-files"])  # type: ignore[index, union-attr]
        queries = source.queries(20 if small else QUERIES)
        for query in queries[:WARM_UP]:
            lake.sql(query).collect()
            lake.sql(query, route=False).collect()
        taken_choices(lake.spark)
        timed = [measured(lake, query) for query in queries]
        cold = taken_choices(lake.spark)
        for query in queries:
            lake.sql(query)._jdf.queryExecution().optimizedPlan()
        memoised = taken_choices(lake.spark)
        many = choice_ms(lake, MANY_FILES // 10 if small else MANY_FILES)
        choices = {
            "choice_ms": spread(cold),
            "memoised_choice_ms": spread(memoised),
            "choice_ms_many_files": spread(many["cold"]),
            "memoised_choice_ms_many_files": spread(many["memoised"]),
            "budget_ms": lake.config.defaults.routing_budget_ms,
        }
        return result(source, timed, {"files": files, "build_seconds": built, **choices})


def result(source: Observations, timed: Sequence[Timed], more: Mapping[str, Any]) -> Result:
    pruned = [each for each in timed if each.chosen != "base"]
    speedups = [each.unrouted / each.routed for each in pruned]
    return Result(
        name="route_workload",
        ours_seconds=statistics.median(each.routed for each in pruned),
        peer=PEER,
        peer_seconds=statistics.median(each.unrouted for each in pruned),
        limit_seconds=None,
        rounds=ROUNDS,
        rows=source.rows,
        bytes=sum(file.stat().st_size for file in source.folder.iterdir()),
        samples={"ours": [each.routed for each in timed], "peer": [each.unrouted for each in timed]},
        more={
            "queries": len(timed),
            "routed_queries": len(pruned),
            "median_speedup_where_routed": statistics.median(speedups),
            "least_cost_chosen_share": share(each.least_cost for each in timed),
            "least_bytes_chosen_share": share(each.least_bytes for each in timed),
            "slower_than_allowed": [each.query for each in timed if each.slower],
            **more,
        },
    )


def spread(milliseconds: Sequence[float]) -> Mapping[str, float]:
    ordered = sorted(milliseconds)
    return {"median": statistics.median(ordered), "p99": ordered[int(0.99 * (len(ordered) - 1))], "most": ordered[-1]}


def share(flags: Any) -> float:
    found = list(flags)
    return sum(found) / len(found)


def measured(lake: Lake, query: str) -> Timed:
    seconds: dict[bool, list[float]] = {True: [], False: []}
    rows: list[Any] = []
    for _ in range(ROUNDS):
        for route in (True, False):
            begun = time.perf_counter()
            rows.append(lake.sql(query, route=route).collect())
            seconds[route].append(time.perf_counter() - begun)
    assert all(each == rows[0] for each in rows), query
    [relation] = lake.explain(query).relations
    scans = {layout.layout: scanned(lake, query, layout.layout) for layout in relation.layouts}
    return Timed(
        query,
        min(seconds[True]),
        min(seconds[False]),
        relation.chosen,
        {layout: size for layout, (_, size) in scans.items()},
        {layout: size + OPEN_COST * files for layout, (files, size) in scans.items()},
    )


def scanned(lake: Lake, query: str, layout: str) -> tuple[int, int]:
    """Files and bytes that Spark's scan of this layout plans to read, as its own metrics say."""
    frame = lake.sql(query, layout=layout)
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    files = size = 0
    for place in range(leaves.size()):
        scan = leaves.apply(place)
        if scan.getClass().getSimpleName() == "BatchScanExec":
            scan.inputPartitions()
            told = {metric.name(): metric.value() for metric in scan.scan().reportDriverMetrics()}
            files += told["resultDataFiles"] + told.get("resultDeleteFiles", 0)
            size += told["totalDataFileSize"] + told.get("totalDeleteFileSize", 0)
    return files, size
