"""One Spark session from one configuration.

Sessions of one process share one context, and each has its own catalogs: opening a second lake never changes what
the first one, or the user's own session, means by a name. Catalog settings hold credentials, so they are set on the
session alone and appear neither on a command line nor in Spark's event log.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.config import Config
from relayout.errors import EnvironmentProblem
from relayout.spark.executors import ship_package
from relayout.spark.jars import cache_folder, ensure_jars, jars_for
from relayout.spark.java import find_java, home_for_spark
from relayout.spark.route.jar import EXTENSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

ROUTING = "spark.relayout.routing"
ROUTING_LAYOUT = "spark.relayout.routing.layout"
ROUTING_BUDGET_MS = "spark.relayout.routing.budget-ms"

KEEP_LOGS_SECONDS = 7 * 24 * 3600

_LOOPBACK_MASTER = re.compile(r"spark://(127\.[\d.]+|localhost|\[::1\])[:,]")

logger = logging.getLogger(__name__)


def start_session(config: Config) -> SparkSession:
    """A session with the configured catalog, on the context of this process or on a new one."""
    from relayout.spark.jvm.gateway import fetch_with_spark, launch, load_jars, running_session

    prepare_environment(config)
    jar_paths = ensure_jars(jars_for(config), fetch_with_spark)
    running = running_session()
    if running is not None:
        _refuse_other_kind_of_master(running, config)
        spark = running.newSession()
        load_jars(spark, jar_paths)
        _require_iceberg(spark)
        _set_what_can_be_set(spark, session_settings(config, jar_paths))
    else:
        log = _log_file()
        launch(launch_settings(config, jar_paths), log)
        spark = _new_context(config, jar_paths, log)
    _set_catalog(spark, config)
    spark.conf.set(ROUTING_BUDGET_MS, str(config.defaults.routing_budget_ms))
    _route(spark)
    ship_package(spark)
    return spark


def attach_session(spark: SparkSession) -> None:
    """Let a session that relayout did not start route the queries that it is given."""
    from relayout.spark.jvm.routing import attach_rule

    if _is_connect(spark):
        raise EnvironmentProblem(
            "a Spark Connect session cannot be attached to from its client",
            where="relayout.attach(spark)",
            next="write the rule's jar with `relayout jar -o relayout-spark.jar` and give it to the server with "
            f"--jars relayout-spark.jar --conf spark.sql.extensions={EXTENSIONS},{EXTENSION}",
        )
    _require_iceberg(spark)
    attach_rule(spark)


def adopt_session(spark: SparkSession, config: Config) -> SparkSession:
    """The user's own session, with the configured catalog unless it already has one of that name."""
    from relayout.spark.jvm.gateway import fetch_with_spark, load_jars

    if _is_connect(spark):
        raise EnvironmentProblem(
            "a Spark Connect session cannot be used here",
            where="relayout.open(…, spark=…)",
            next="commits need a classic session: pass one, or none and let relayout start its own",
        )
    _require_iceberg(spark)
    prefix = f"spark.sql.catalog.{config.catalog.name}"
    if spark.conf.get(prefix, None) is None:
        load_jars(spark, ensure_jars(jars_for(config), fetch_with_spark))
        _set_catalog(spark, config)
    else:
        _require_same_catalog(spark, config)
    _route(spark)
    ship_package(spark)
    return spark


def launch_settings(config: Config, jar_paths: list[str]) -> dict[str, str]:
    """What the JVM must be told before it runs."""
    return {
        "spark.master": config.spark.master,
        "spark.driver.memory": config.spark.driver_memory,
        "spark.jars": ",".join(jar_paths),
    }


def session_settings(config: Config, jar_paths: list[str]) -> dict[str, str]:
    """Every setting but the catalog's; what the user gave under `spark.conf` wins."""
    settings = {
        **launch_settings(config, jar_paths),
        "spark.api.mode": "classic",
        "spark.app.name": "relayout",
        "spark.sql.extensions": EXTENSIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.defaultCatalog": config.catalog.name,
        # Column and table names come from data: `${…}` in one of them must never be looked up as a variable.
        "spark.sql.variable.substitute": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.log.level": "ERROR",
    }
    if _on_this_machine(config):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    return settings | dict(config.spark.conf)


def catalog_settings(config: Config) -> dict[str, str]:
    """The configured catalog as Spark declares one."""
    prefix = f"spark.sql.catalog.{config.catalog.name}"
    settings = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": config.catalog.type,
        f"{prefix}.warehouse": config.warehouse,
        # Other writers commit beside us, so a cached table would be a stale table.
        f"{prefix}.cache-enabled": "false",
    }
    if config.catalog.uri:
        settings[f"{prefix}.uri"] = spark_catalog_uri(config.catalog.uri)
    if config.catalog.type == "jdbc":
        settings[f"{prefix}.jdbc.schema-version"] = "V1"
    if config.warehouse.startswith("s3://"):
        settings[f"{prefix}.io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
    # PyIceberg reads either name of the region, Iceberg's Java only this one.
    if region := config.catalog.properties.get("s3.region"):
        settings[f"{prefix}.client.region"] = region
    for key, value in config.catalog.properties.items():
        settings[f"{prefix}.{key}"] = value
    return settings


def spark_catalog_uri(uri: str) -> str:
    """SQLite waits for its lock instead of failing at once when two runs commit together."""
    if uri.startswith("jdbc:sqlite:") and "busy_timeout" not in uri:
        return uri + ("&" if "?" in uri else "?") + "busy_timeout=60000"
    return uri


def _on_this_machine(config: Config) -> bool:
    """Whether the driver can keep to the loopback interface; a remote master's executors must reach it."""
    return config.spark.master.startswith("local") or bool(_LOOPBACK_MASTER.match(config.spark.master))


def prepare_environment(config: Config) -> None:
    """Spark's scripts and Python's workers are told through the environment where Java and Python are."""
    if spark_home := os.environ.get("SPARK_HOME"):
        require_matching_spark_home(spark_home)
    os.environ["JAVA_HOME"] = home_for_spark(find_java(), cache_folder())
    if config.spark.master.startswith("local"):
        # Somebody's choice for other clusters would give local workers a Python without our libraries.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if _on_this_machine(config):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def require_matching_spark_home(home: str) -> None:
    import pyspark

    wanted = ".".join(pyspark.__version__.split(".")[:2])
    if not list(Path(home, "jars").glob(f"spark-core_2.13-{wanted}.*.jar")):
        raise EnvironmentProblem(
            f"SPARK_HOME is not a Spark {wanted}, which PySpark {pyspark.__version__} needs",
            where=f"SPARK_HOME={home}",
            next="unset SPARK_HOME: the Spark that came with PySpark is used then",
        )


@contextmanager
def set_for_now(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session that are what they were afterwards."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _log_file() -> Path:
    """Where the JVM of this process prints; files of processes long gone are removed on the way."""
    folder = cache_folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("spark-*.log"):
        try:
            if time.time() - old.stat().st_mtime > KEEP_LOGS_SECONDS:
                old.unlink()
        except FileNotFoundError:
            continue
    return folder / f"spark-{os.getpid()}.log"


def _new_context(config: Config, jar_paths: list[str], log: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    from relayout.spark.jvm.gateway import java_failure

    builder = SparkSession.builder
    for key, value in session_settings(config, jar_paths).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise EnvironmentProblem(
            f"Spark did not start: {next(iter(str(java_failure(error) or error).splitlines()), type(error).__name__)}",
            where=f"master {config.spark.master}, JAVA_HOME={os.environ['JAVA_HOME']}; its log is {log}",
            next="is the master reachable and spark.conf right? run `relayout doctor`; `--debug` shows Spark's message",
        ) from error


def _set_what_can_be_set(spark: SparkSession, settings: dict[str, str]) -> None:
    """SQL settings of a session that shares its context; what belongs to the context stays as that was started."""
    for key, value in settings.items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)


def _set_catalog(spark: SparkSession, config: Config) -> None:
    """Declare the catalog, and nothing left over of another one that the context was started with."""
    prefix = f"spark.sql.catalog.{config.catalog.name}"
    settings = catalog_settings(config)
    for key in spark.conf.getAll:
        if key.startswith(f"{prefix}.") and key not in settings:
            spark.conf.unset(key)
    for key, value in settings.items():
        spark.conf.set(key, value)


def _route(spark: SparkSession) -> None:
    """Everything but routing works without the rule, so a session that cannot have it is told of and used."""
    from relayout.spark.jvm.routing import attach_rule

    try:
        attach_rule(spark)
    except EnvironmentProblem as problem:
        logger.warning("Queries are not routed: %s; %s", problem.what, problem.next)


def _is_connect(spark: SparkSession) -> bool:
    return "connect" in type(spark).__module__.split(".")


def _require_iceberg(spark: SparkSession) -> None:
    if EXTENSIONS not in (spark.conf.get("spark.sql.extensions", None) or ""):
        raise EnvironmentProblem(
            "the Spark session of this process runs without Iceberg's extensions",
            where="spark.sql.extensions",
            next="stop that session (spark.stop()) and let relayout start one, or start it with "
            f"spark.sql.extensions={EXTENSIONS}",
        )


def _require_same_catalog(spark: SparkSession, config: Config) -> None:
    """A session that means another catalog by this name would write where relayout does not read."""
    prefix = f"spark.sql.catalog.{config.catalog.name}"
    wanted = catalog_settings(config)
    for part in ("type", "uri", "warehouse"):
        key = f"{prefix}.{part}"
        found = spark.conf.get(key, None)
        if found is None or key not in wanted:
            continue
        if _comparable(found) != _comparable(wanted[key]):
            raise EnvironmentProblem(
                f"the session's catalog {config.catalog.name!r} is not the one that is configured",
                where=f"{key} of the session against catalog.{part} of {config.file}",
                next="name the same catalog in both, or give the configured one another name (`catalog.name`)",
            )


def _comparable(setting: str) -> str:
    return setting.removeprefix("file://").removeprefix("file:").partition("?")[0].rstrip("/")


def _refuse_other_kind_of_master(spark: SparkSession, config: Config) -> None:
    """One process has one context; local work must not land on a cluster, nor a cluster's on this machine."""
    running = str(spark.sparkContext.master)
    if running.startswith("local") != config.spark.master.startswith("local"):
        raise EnvironmentProblem(
            f"Spark already runs in this process on {running}, the configuration wants {config.spark.master}",
            where="spark.master",
            next="stop that session first (spark.stop()), or use another process",
        )
    if running != config.spark.master:
        logger.info("Spark of this process runs on %s, the configuration says %s", running, config.spark.master)
