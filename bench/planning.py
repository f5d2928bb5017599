"""Planning a table of a million files: seconds and memory, beside Iceberg's own planner in the JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from bench.places import ROOT
from bench.results import Result
from bench.rounds import medians
from bench.sides.manifests import ManyFiles

ROUNDS = 2
FEW, MANY = 100_000, 1_000_000
SMALL_FEW, SMALL_MANY = 10_000, 100_000
PEER = "Iceberg: BinPackRewriteFilePlanner(table).plan() in the driver's JVM"
JVM_MEMORY = "4g"

OURS = """
import json, resource, sys, time
from pyiceberg.catalog.sql import SqlCatalog
import relayout
table = SqlCatalog("lake", **json.loads(sys.argv[1])).load_table("db.t")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.perf_counter()
plan = relayout.RewritePlanner(table).plan()
seconds = time.perf_counter() - begun
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "groups": len(plan.groups), "files": plan.files_before,
                  "before_kb": before, "after_kb": after}))
"""

THEIRS = """
import json, os, sys, time
import relayout
told = json.loads(sys.argv[1])
catalog = {"name": "lake", "type": "jdbc", "uri": told["uri"].replace("sqlite:///", "jdbc:sqlite:")}
settings = {"master": "local[2]", "driver_memory": told["memory"]}
config = {"warehouse": told["warehouse"], "namespace": "db", "tables": {}, "catalog": catalog, "spark": settings}
spark = relayout.open(config).spark
jvm = spark._jvm
def peak_kb():
    pid = jvm.java.lang.ProcessHandle.current().pid()
    return int(next(line.split()[1] for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM")))
table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "lake.db.t")
before = peak_kb()
begun = time.perf_counter()
planner = jvm.org.apache.iceberg.actions.BinPackRewriteFilePlanner(table)
planner.init(jvm.java.util.HashMap())
plan = planner.plan()
seconds = time.perf_counter() - begun
print(json.dumps({"seconds": seconds, "groups": plan.totalGroupCount(), "before_kb": before, "after_kb": peak_kb()}))
"""


def plan_million(small: bool) -> Result:
    """The same table planned by both, each time in a process of its own; and ours on a tenth of the files."""
    few, many = (SMALL_FEW, SMALL_MANY) if small else (FEW, MANY)
    for files in (few, many):
        ManyFiles(files).table()
    tenth = _ran(OURS, few)
    told: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
    for number in range(1 if small else ROUNDS):
        for side, program in (("ours", OURS), ("peer", THEIRS)):
            told[side].append(_ran(program, many))
            print(f"  round {number + 1}: {side} {told[side][-1]}", flush=True)
    if told["ours"][0]["groups"] != told["peer"][0]["groups"]:
        raise AssertionError(f"{told['ours'][0]} differs from {told['peer'][0]}")
    samples = {side: [run["seconds"] for run in runs] for side, runs in told.items()}
    seconds = medians(samples)
    return Result(
        name="plan_million",
        ours_seconds=seconds["ours"],
        peer=PEER,
        peer_seconds=seconds["peer"],
        limit_seconds=None,
        rounds=len(samples["ours"]),
        rows=many,
        bytes=sum(file.stat().st_size for file in ManyFiles(many).folder.rglob("*.avro")),
        samples=samples,
        more={
            "files": many,
            "groups": told["ours"][0]["groups"],
            "ours_peak_mb": max(_peak_mb(run) for run in told["ours"]),
            "ours_peak_mb_for_a_tenth": _peak_mb(tenth),
            "ours_seconds_for_a_tenth": tenth["seconds"],
            "peer_peak_mb": max(_peak_mb(run) for run in told["peer"]),
            "peer_memory_limit": JVM_MEMORY,
        },
    )


def _peak_mb(run: dict[str, Any]) -> float:
    return float(run["after_kb"]) / 1024


def _ran(program: str, files: int) -> dict[str, Any]:
    """What a program of its own says of the table in its last line."""
    told = json.dumps(ManyFiles(files).catalog() | ({"memory": JVM_MEMORY} if program is THEIRS else {}))
    source = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    answer = subprocess.run(
        [sys.executable, "-c", program, told], capture_output=True, text=True, check=False, env={**os.environ, **source}
    )
    if answer.returncode:
        raise AssertionError(answer.stderr[-2_000:])
    return dict(json.loads(answer.stdout.strip().splitlines()[-1]))
