"""Disks, open files and the network of this machine."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from relayout.config import Config
from relayout.errors import EnvironmentProblem
from relayout.spark.jars import cache_folder
from relayout.table.quantities import size_text
from relayout.upkeep.findings import Finding, State

LITTLE_SPACE_BYTES = 2_000_000_000
FEW_OPEN_FILES = 1024
MASTER_SECONDS = 5

_STANDALONE_MASTER = re.compile(r"spark://(.+)")


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the closest one above it that is there; raises where none can be made on the way."""
    for place in (path, *path.parents):
        if place.is_dir():
            return place
        if place.is_symlink() or place.exists():
            kind = "a link to nothing" if place.is_symlink() else "a file, not a folder"
            raise EnvironmentProblem(
                f"{place} is {kind}", where=str(path) if path != place else "", next="remove it, or name another folder"
            )
    return path


def disk_findings(config: Config, *, declared: bool) -> Iterator[Finding]:
    """Free space where data, temporary files and fetched files go."""
    if declared and not config.warehouse.startswith("s3://"):
        yield space_finding("the warehouse", Path(config.warehouse), "change `warehouse`")
    yield _writable("temporary files", Path(tempfile.gettempdir()), "set TMPDIR to another folder")
    yield _writable("the cache", cache_folder(), "set RELAYOUT_CACHE to another folder")


def space_finding(purpose: str, folder: Path, elsewhere: str) -> Finding:
    """How much room there is on the disk of a folder that may not exist yet."""
    try:
        free = shutil.disk_usage(nearest_folder(folder)).free
    except EnvironmentProblem as error:
        return Finding.from_error("disk", error)
    what = f"{size_text(free)} free for {purpose} ({folder})"
    if free < LITTLE_SPACE_BYTES:
        return Finding("disk", State.WARNING, what, f"make room there, or {elsewhere}")
    return Finding("disk", State.OK, what)


def _writable(purpose: str, folder: Path, elsewhere: str) -> Finding:
    finding = space_finding(purpose, folder, elsewhere)
    if finding.state is State.PROBLEM:
        return finding
    try:
        with tempfile.TemporaryFile(dir=nearest_folder(folder)) as probe:
            probe.write(b"relayout")
    except OSError as error:
        what = f"{purpose} cannot be written: {error.strerror} ({folder})"
        return Finding("disk", State.PROBLEM, what, f"allow writing there, or {elsewhere}")
    return finding


def open_files() -> Finding:
    """How many files a process may hold open; tasks hold one for each partition that they write."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return Finding("open files", State.OK, "without a limit")
    what = f"up to {soft:,} at once"
    if soft >= FEW_OPEN_FILES:
        return Finding("open files", State.OK, what)
    reach = FEW_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, FEW_OPEN_FILES)
    fix = f"run `ulimit -n {reach}` first" if reach > soft else f"have the hard limit raised to {FEW_OPEN_FILES}"
    return Finding("open files", State.WARNING, what, fix)


def network(config: Config) -> list[Finding]:
    """The loopback interface, over which Python, the JVM and local tasks talk, and the master of a cluster."""
    findings = [_loopback()]
    if master := _STANDALONE_MASTER.fullmatch(config.spark.master):
        findings.append(_reached(master[1].split(",")))
    return findings


def _loopback() -> Finding:
    address = os.environ.get("SPARK_LOCAL_IP") or "127.0.0.1"
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.create_server((address, 0), family=family) as server:
            socket.create_connection(server.getsockname()[:2], timeout=MASTER_SECONDS).close()
    except OSError as error:
        what = f"no connection on {address}: {error.strerror or error}"
        if "SPARK_LOCAL_IP" in os.environ:
            return Finding("network", State.PROBLEM, what, "unset SPARK_LOCAL_IP")
        return Finding("network", State.PROBLEM, what, "bring up the loopback interface (`ip link set lo up`)")
    return Finding("network", State.OK, f"connections on {address} work")


def _reached(masters: list[str]) -> Finding:
    reasons = []
    for master in masters:
        host, _, port = master.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=MASTER_SECONDS):
                return Finding("network", State.OK, f"the master {master} answers")
        except (OSError, ValueError) as error:
            reasons.append(f"the master {master} cannot be reached: {error}")
    return Finding("network", State.PROBLEM, "; ".join(reasons), "start it, or correct `spark.master`")
