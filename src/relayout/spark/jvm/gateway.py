"""Starting the JVM, loading jars into it, and turning Java's exceptions into named errors."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.conf import SparkConf
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway

from relayout.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN_JVM = "PYSPARK_GATEWAY_PORT"
"""Set where spark-submit started the JVM before Python; that JVM is not ours to end."""

_TELLING = re.compile(r"error|exception|cannot|could not|invalid", re.IGNORECASE)


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


def running_session() -> SparkSession | None:
    """A session of the context that runs in this process, or None when none runs."""
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.builder.getOrCreate()


def make_active(spark: SparkSession) -> None:
    """Let Java's calls of this thread mean this session.

    Spark's own statements see to it by themselves; whatever else looks a catalog up takes that of the session which the
    thread used last, and where two lakes are open in one process that may be the other one.
    """
    session: Any = spark
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


def launch(settings: Mapping[str, str], log: Path) -> None:
    """Start a JVM for the next context; what it and Python's workers print goes to the log.

    Only what must be known before the JVM runs belongs into `settings`: they stand on its command line, where every
    user of the machine can read them. An idle JVM of an earlier context has that context's memory and jars, so it ends.
    """
    if FOREIGN_JVM in os.environ:
        return
    _end_idle_jvm()
    with log.open("ab") as output:
        try:
            gateway = _launched(settings, output)
        except Exception as error:
            raise EnvironmentProblem(
                f"the JVM did not start: {_last_words(log) or error}",
                where=f"JAVA_HOME={os.environ.get('JAVA_HOME', '')}, driver memory "
                f"{settings.get('spark.driver.memory', 'as Spark chooses')}; its log is {log}",
                next="run `relayout doctor`; is spark.driver_memory more than this machine has?",
            ) from error
    SparkContext._gateway = gateway
    SparkContext._jvm = gateway.jvm


def load_jars(spark: SparkSession, paths: Iterable[str]) -> None:
    """Give a running context the jars that it lacks, on the driver and on its executors."""
    context: Any = spark.sparkContext
    jvm = context._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    present = {Path(str(url.getPath())).name for url in loader.getURLs()} | _class_path_names(jvm)
    for path in paths:
        if Path(path).name not in present:
            loader.addURL(jvm.java.io.File(path).toURI().toURL())
            context._jsc.addJar(path)


def fetch_with_spark(coordinates: Iterable[str], folder: Path) -> None:
    """Let Spark's resolver put the artifacts into `folder/jars`; nothing is run from them."""
    wanted = ",".join(coordinates)
    with tempfile.TemporaryDirectory(prefix="relayout-fetch-") as scratch, _own_jvm():
        log = Path(scratch) / "log"
        with log.open("wb") as output:
            try:
                gateway = _launched({"spark.jars.packages": wanted, "spark.jars.ivy": str(folder)}, output)
            except Exception as error:
                raise EnvironmentProblem(
                    f"the jars could not be fetched: {_last_words(log) or error}",
                    where=f"the public Maven repository, through Spark's resolver: {wanted}",
                    next="check the network and its proxy, or name a folder with the jars in RELAYOUT_JARS",
                ) from error
        _end(gateway)


def start_callbacks(spark: SparkSession) -> None:
    """Let Java call Python objects; needed before a validator is handed over."""
    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)


def _launched(settings: Mapping[str, str], output: BinaryIO) -> Any:
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    return launch_gateway(conf, {"stdout": output, "stderr": subprocess.STDOUT})


@contextmanager
def _own_jvm() -> Iterator[None]:
    """Under spark-submit PySpark would join the JVM that runs; hide it for the time of one launch."""
    hidden = os.environ.pop(FOREIGN_JVM, None)
    try:
        yield
    finally:
        if hidden is not None:
            os.environ[FOREIGN_JVM] = hidden


def _end_idle_jvm() -> None:
    idle = SparkContext._gateway
    if idle is not None and SparkContext._active_spark_context is None and idle.proc is not None:
        SparkContext._gateway = SparkContext._jvm = None
        _end(idle)


def _end(gateway: Any) -> None:
    """A JVM ends by itself when its standard input closes; one that hangs is killed."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(timeout=30)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


def _class_path_names(jvm: Any) -> set[str]:
    path = str(jvm.java.lang.System.getProperty("java.class.path"))
    return {Path(entry).name for entry in path.split(os.pathsep)}


def _last_words(log: Path) -> str:
    """The line of a failed JVM that says why, without its stack traces."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    telling = [line for line in lines if _TELLING.search(line) and not line.startswith(("at ", "WARN"))]
    return telling[0][:300] if telling else ""
