"""One Spark session from one configuration."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.config import Config
from relayout.errors import EnvironmentProblem
from relayout.spark.jars import cache_folder, ensure_jars, jars_for
from relayout.spark.java import find_java, home_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

CATALOG_SHORTCUTS = {"rest", "hadoop", "hive", "glue", "jdbc"}


def session_settings(config: Config, jar_paths: list[str]) -> dict[str, str]:
    """Every setting of the session; what the user gave under `spark.conf` wins."""
    settings = {
        "spark.app.name": "relayout",
        "spark.master": config.spark.master,
        "spark.driver.memory": config.spark.driver_memory,
        "spark.jars": ",".join(jar_paths),
        "spark.sql.extensions": EXTENSIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "false",
        "spark.sql.defaultCatalog": config.catalog.name,
        "spark.sql.shuffle.partitions": "8",
        "spark.log.level": "ERROR",
        **catalog_settings(config),
    }
    if config.spark.master.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    settings.update(config.spark.conf)
    return settings


def catalog_settings(config: Config) -> dict[str, str]:
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
    for key, value in config.catalog.properties.items():
        settings[f"{prefix}.{key}"] = value
    return settings


def spark_catalog_uri(uri: str) -> str:
    """SQLite waits for its lock instead of failing at once when two runs commit together."""
    if uri.startswith("jdbc:sqlite:") and "busy_timeout" not in uri:
        return uri + ("&" if "?" in uri else "?") + "busy_timeout=60000"
    return uri


def start_session(config: Config) -> SparkSession:
    """A session with the configured catalog; reuses the process's JVM when there is one."""
    from pyspark.sql import SparkSession

    from relayout.spark.jvm.gateway import fetch_with_spark

    java = find_java()
    os.environ["JAVA_HOME"] = home_for_spark(java, cache_folder())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if config.spark.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    jar_paths = ensure_jars(jars_for(config.catalog.type, config.catalog.uri, config.warehouse), fetch_with_spark)
    builder = SparkSession.builder
    for key, value in session_settings(config, jar_paths).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise EnvironmentProblem(
            f"Spark did not start: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            where=f"Java {java.major} from {java.origin}, master {config.spark.master}",
            next="run `relayout doctor`; `--debug` shows Spark's own message",
        ) from error
    if not config.spark.master.startswith("local"):
        spark.sparkContext.addPyFile(str(package_archive()))
    return spark


def package_archive() -> Path:
    """This package as a zip, so that executors run exactly the kernels that the driver planned with."""
    source = Path(__file__).resolve().parent.parent
    folder = cache_folder() / "package"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"relayout-{os.getpid()}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                target.write(path, Path("relayout") / path.relative_to(source))
    return archive
