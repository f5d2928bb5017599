"""Starting the JVM, fetching jars through Spark's resolver, and turning Java's exceptions into named errors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.conf import SparkConf
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway

from relayout.errors import EnvironmentProblem


class JavaFailure(Exception):
    """A Java exception: its class, its message and those of its causes, without py4j's wrapping."""

    def __init__(self, class_name: str, message: str, causes: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(f"{class_name.rsplit('.', 1)[-1]}: {message}")
        self.class_name = class_name
        self.message = message
        self.causes = causes

    def is_a(self, *simple_names: str) -> bool:
        """Whether the exception itself, not one of its causes, is of one of these classes."""
        return self.class_name.rsplit(".", 1)[-1] in simple_names


def java_failure(error: BaseException) -> JavaFailure | None:
    """The Java exception behind a py4j error, or None when the error did not come from Java."""
    if isinstance(error, Py4JJavaError):
        chain: list[tuple[str, str]] = []
        cause = error.java_exception
        while cause is not None and len(chain) < 10:
            chain.append((cause.getClass().getName(), str(cause.getMessage() or "")))
            cause = cause.getCause()
        return JavaFailure(chain[0][0], chain[0][1], tuple(chain[1:]))
    if isinstance(error, Py4JError):
        return JavaFailure("py4j.Py4JError", str(error))
    return None


def fetch_with_spark(coordinates: Iterable[str], folder: Path) -> None:
    """Let Spark's resolver put the artifacts into `folder/jars`; nothing is run from them."""
    conf = SparkConf(loadDefaults=False)
    conf.set("spark.jars.packages", ",".join(coordinates)).set("spark.jars.ivy", str(folder))
    try:
        gateway = launch_gateway(conf)
    except Exception as error:
        raise EnvironmentProblem(
            "the jars could not be fetched",
            where="the public Maven repository, through Spark's resolver: " + ", ".join(coordinates),
            next="check the network and its proxy, or name a folder with the jars in RELAYOUT_JARS",
        ) from error
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)


def start_callbacks(spark: Any) -> None:
    """Let Java call Python objects; needed before a validator is handed over."""
    ensure_callback_server_started(spark.sparkContext._gateway)


def gateway_is_running() -> bool:
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None and "PYSPARK_GATEWAY_PORT" not in os.environ
