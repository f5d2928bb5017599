"""Java, the jars, and Spark itself: what every run needs before it can touch a table."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.config import Catalog, Config
from relayout.errors import EngineError, EnvironmentProblem, RelayoutError
from relayout.jobs.checks.patience import within
from relayout.jobs.checks.store import stored_by_spark
from relayout.read.catalog import embedded_catalog_file
from relayout.spark.executors import ANOTHER_PYTHON, pythons_of_tasks
from relayout.spark.jars import ensure_jars, jars_for
from relayout.spark.java import NEWEST_MAJOR, OLDEST_MAJOR, find_java
from relayout.spark.session import prepare_environment, require_matching_spark_home
from relayout.table.names import quote_spark
from relayout.table.quantities import count_text, duration_text
from relayout.upkeep.findings import Finding, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Start = Callable[[Config], "SparkSession"]
"""Starts a session from a configuration."""

FETCH_SECONDS = 300
SPARK_SECONDS = 180
MOST_TASKS = 64


def java_in_use() -> Finding:
    """The Java that a session takes, and why not one that was looked at before it."""
    java = find_java()
    what = f"Java {java.major} from {java.origin} ({java.home})"
    if not java.has_vector_module:
        what += ", started through a launcher because it lacks the vector module"
    if java.passed_over:
        told = f"{what}; passed over: {'; '.join(java.passed_over)}"
        fix = f"name a Java {OLDEST_MAJOR} to {NEWEST_MAJOR} in JAVA_HOME, or unset it"
        return Finding("Java", State.WARNING, told, fix)
    return Finding("Java", State.OK, what)


def spark_home() -> Finding:
    """SPARK_HOME, which must be the Spark that PySpark was made for."""
    if home := os.environ.get("SPARK_HOME"):
        require_matching_spark_home(home)
        return Finding("SPARK_HOME", State.OK, f"fits PySpark {version('pyspark')} ({home})")
    return Finding("SPARK_HOME", State.OK, f"not set; the Spark inside PySpark {version('pyspark')} is used")


def jars_in_place(config: Config) -> Finding:
    """The pinned jars, each checked; those that are missing are fetched now, because every run needs them."""
    fetched: list[str] = []

    def fetch(coordinates: Iterable[str], folder: Path) -> None:
        from relayout.spark.jvm.gateway import fetch_with_spark

        fetched.extend(coordinates)
        try:
            prepare_environment(config)
        except EnvironmentProblem as error:
            raise EnvironmentProblem(
                f"{', '.join(fetched)} must be fetched, which takes a Java and a Spark that fit",
                next="correct these first, or name a folder with the jars in RELAYOUT_JARS",
            ) from error
        within(
            FETCH_SECONDS,
            "the public Maven repository",
            lambda: fetch_with_spark(fetched, folder),
            "check the network and its proxy, or name a folder with the jars in RELAYOUT_JARS",
        )

    wanted = jars_for(config)
    paths = ensure_jars(wanted, fetch)
    names = ", ".join(f"{jar.artifact} {jar.version}" for jar in wanted)
    how = f"; {len(fetched)} of them fetched just now" if fetched else ""
    return Finding("jars", State.OK, f"{names}, with the pinned SHA-256 ({Path(paths[0]).parent}){how}")


def spark_round_trip(config: Config, start: Start, *, on_lake: bool) -> list[Finding]:
    """Start Spark, ask the catalog, run tasks; off the lake a catalog that is thrown away answers instead."""
    patience = f"has {config.spark.master} free cores and memory, and can its workers reach this machine?"
    with tempfile.TemporaryDirectory(prefix="relayout-doctor-", ignore_cleanup_errors=True) as folder:
        asked = _without_changes(config) if on_lake else _thrown_away(config, folder)
        whom = f"Spark on {config.spark.master}"
        try:
            return within(SPARK_SECONDS, whom, lambda: list(_asked(asked, start, config, on_lake=on_lake)), patience)
        except RelayoutError as error:
            return [Finding.from_error("Spark", error, "check spark.driver_memory, spark.master and spark.conf")]


def _without_changes(config: Config) -> Config:
    """The same catalog, told not to make or change its own tables."""
    properties = {**config.catalog.properties, "jdbc.init-catalog-tables": "false"}
    kept = properties if config.catalog.type == "jdbc" else config.catalog.properties
    return replace(config, catalog=replace(config.catalog, properties=kept))


def _thrown_away(config: Config, folder: str) -> Config:
    """The same Spark on a catalog of the same kind in a temporary folder, or on a plain folder for a server's."""
    if embedded_catalog_file(config) is None:
        catalog = Catalog(config.catalog.name, "hadoop")
    else:
        catalog = Catalog(config.catalog.name, "jdbc", f"jdbc:sqlite:{folder}/catalog.db")
    return replace(config, warehouse=folder, catalog=catalog)


def _asked(config: Config, start: Start, real: Config, *, on_lake: bool) -> Iterator[Finding]:
    """Spark's answers on `config`, which is not always the `real` one."""
    begun = time.monotonic()
    name = quote_spark(config.catalog.name)
    try:
        spark = start(config)
        iceberg = spark.sql(f"SELECT {name}.system.iceberg_version()").collect()[0][0]
        namespaces = len(spark.sql(f"SHOW NAMESPACES IN {name}").collect())
        took = duration_text(time.monotonic() - begun)
        answered = f"Spark {spark.version} with Iceberg {iceberg} on {spark.sparkContext.master} answered in {took}"
        if on_lake:
            shown = f"catalog {config.catalog.name} shows {count_text(namespaces, 'namespace')}"
        else:
            shown = "on a catalog that was thrown away"
        yield Finding("Spark", State.OK, f"{answered}; {shown}")
        yield _tasks(spark)
        if real.warehouse.startswith("s3://"):
            yield stored_by_spark(spark, real)
    except RelayoutError:
        raise
    except Exception as error:
        raise EngineError(
            f"Spark started and failed then: {_reason(error)}",
            where=f"catalog {config.catalog.name}, master {config.spark.master}",
            next="check catalog.uri, catalog.properties and spark.conf",
        ) from error


def _tasks(spark: SparkSession) -> Finding:
    """What Python inside Spark's tasks is, and whether it has what kernels import."""
    count = min(MOST_TASKS, int(spark.sparkContext.defaultParallelism))
    found = pythons_of_tasks(spark, count)
    lacking = [f"{one.python} on {one.host} cannot import {', '.join(one.missing)}" for one in found if one.missing]
    if lacking:
        return Finding("tasks", State.PROBLEM, "; ".join(lacking), ANOTHER_PYTHON)
    told = "; ".join(f"{one.python} with {', '.join(' '.join(pair) for pair in one.versions)}" for one in found)
    return Finding("tasks", State.OK, f"{count_text(count, 'task')} ran in {told}")


def _reason(error: Exception) -> str:
    from relayout.spark.jvm.gateway import java_failure

    lines = str(java_failure(error) or error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
