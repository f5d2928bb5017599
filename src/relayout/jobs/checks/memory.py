"""Whether the configured memory is there: the machine's, or less where a container is held to less."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from relayout.config import Spark
from relayout.table.quantities import size_text
from relayout.upkeep.findings import Finding, State

SHARE_FOR_SPARK = 0.8
SMALLEST_DRIVER_BYTES = 512 << 20
"""Spark refuses to start with less."""
SMALLEST_TASK_BYTES = 128 << 20

_LOCAL_MASTER = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")


@dataclass(frozen=True, slots=True)
class Machine:
    """What this process may use; `limited` says that a container is held to less than the machine has."""

    memory_bytes: int
    cores: int
    limited: bool = False


def this_machine(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> Machine:
    """Memory and cores, each the least of what the machine has and what control groups allow."""
    physical = _physical_bytes(proc)
    allowed = min((limit for folder in _groups(proc, cgroup, "memory") for limit in _memory_limits(folder)), default=0)
    quota = min((cores for folder in _groups(proc, cgroup, "cpu") for cores in _core_limits(folder)), default=0)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limited = 0 < allowed < physical
    return Machine(allowed if limited else physical, min(cores, quota) if quota else cores, limited)


def memory_finding(spark: Spark, machine: Machine, *, declared: bool) -> Finding:
    """The configured budget against the machine; `declared` is False where nobody wrote one and the defaults hold."""
    tasks = tasks_here(spark.master, machine.cores)
    needed = spark.driver_memory_bytes + tasks * spark.task_memory_bytes
    parts = f"driver_memory {spark.driver_memory}"
    if tasks:
        parts += f" + {tasks} x task_memory {spark.task_memory}"
    whose = "this container may use" if machine.limited else "this machine has"
    what = f"{parts} = {size_text(needed)}; {whose} {size_text(machine.memory_bytes)}"
    if not declared:
        what = f"with the defaults: {what}"
    if needed <= machine.memory_bytes:
        return Finding("memory", State.OK, what)
    smaller = budget_that_fits(spark, tasks, machine.memory_bytes)
    lines = ", ".join(f"`{key}: {value}`" for key, value in smaller.items())
    fix = f"below `spark:` in relayout.yaml write {lines}" if smaller else "give it at least 1 GB"
    return Finding("memory", State.WARNING, what, fix)


def tasks_here(master: str, cores: int) -> int:
    """How many tasks run at once on this machine; none where a cluster runs them."""
    local = _LOCAL_MASTER.fullmatch(master)
    if local is None:
        return 0
    return cores if local[1] == "*" else int(local[1] or 1)


def budget_that_fits(spark: Spark, tasks: int, memory_bytes: int) -> dict[str, str]:
    """Settings with which this machine gets along, with as many tasks as it can hold; empty where it is too small."""
    room = int(memory_bytes * SHARE_FOR_SPARK)
    for fewer in range(tasks, 0, -1):
        each = _rounded(min(spark.task_memory_bytes, room // 2 // fewer))
        driver = _rounded(min(spark.driver_memory_bytes, room - fewer * each))
        if each >= min(SMALLEST_TASK_BYTES, spark.task_memory_bytes) and driver >= SMALLEST_DRIVER_BYTES:
            master = {"master": f'"local[{fewer}]"'} if fewer < tasks else {}
            return {**master, "driver_memory": _written(driver), "task_memory": _written(each)}
    if not tasks and room >= SMALLEST_DRIVER_BYTES:
        return {"driver_memory": _written(_rounded(room))}
    return {}


def _rounded(size_bytes: int) -> int:
    """Down to a figure that people would write."""
    step = next((step for step in (1 << 30, 256 << 20, 64 << 20) if size_bytes >= 4 * step), 1 << 20)
    return size_bytes // step * step


def _written(size_bytes: int) -> str:
    return f"{size_bytes >> 30}g" if size_bytes % (1 << 30) == 0 else f"{size_bytes >> 20}m"


def _physical_bytes(proc: Path) -> int:
    if (told := proc / "meminfo").exists() and (total := re.search(r"MemTotal:\s+(\d+) kB", told.read_text())):
        return int(total[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _groups(proc: Path, cgroup: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's groups for a controller, from the innermost to the root: any may set a limit."""
    own = proc / "self" / "cgroup"
    for line in own.read_text().splitlines() if own.exists() else ():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        # Version 2 has one tree for all controllers and no controller in its line, version 1 a tree for each.
        root = cgroup / controllers if controllers else cgroup
        inner = root / path.strip("/")
        yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(root))


def _memory_limits(folder: Path) -> Iterator[int]:
    for name in ("memory.max", "memory.limit_in_bytes"):
        if (words := _words(folder / name)) and words[0].isdigit():
            yield int(words[0])


def _core_limits(folder: Path) -> Iterator[int]:
    quota_and_period = _words(folder / "cpu.max")
    quota_and_period = quota_and_period or _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
    match quota_and_period:
        case [quota, period] if quota.isdigit() and int(period):
            yield max(1, math.ceil(int(quota) / int(period)))


def _words(file: Path) -> list[str]:
    return file.read_text().split() if file.is_file() else []
