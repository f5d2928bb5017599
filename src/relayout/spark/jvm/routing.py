"""The routing rule inside the JVM: compiled once, put into sessions, asked what it would choose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.errors import EnvironmentProblem
from relayout.spark.jvm.gateway import java_failure, load_jars
from relayout.spark.route.jar import EXTENSION, cached_jar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def attach_rule(spark: SparkSession) -> None:
    """Let the session, and all that share its extensions, route queries; a second time changes nothing."""
    context: Any = spark.sparkContext
    loader = context._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        if not _present(loader):
            load_jars(spark, [str(routing_jar(spark))])
        rule = loader.loadClass(EXTENSION).getConstructor(_no_classes(context)).newInstance(_no_objects(context))
        rule.apply(spark._jsparkSession.extensions())
    except Exception as error:
        raise EnvironmentProblem(
            f"the routing rule cannot be put into this session: {java_failure(error) or error}",
            where=f"Spark {spark.version}",
            next="is this Spark 4.1 with Iceberg's runtime? queries are answered by the base tables until then",
        ) from error


def routing_jar(spark: SparkSession) -> Path:
    """The jar of the rule for this Spark, in the cache."""
    return cached_jar(lambda text: _compiled(spark, text), spark.version)


def told_choice(query: str | DataFrame, spark: SparkSession) -> Mapping[str, Any]:
    """What the rule would do with a statement or a DataFrame, and why; nothing is run."""
    rule = _rule(spark)
    text = rule.explain(spark._jsparkSession, query) if isinstance(query, str) else rule.explainFrame(query._jdf)
    told: Mapping[str, Any] = json.loads(text)
    return told


def decide_now(frame: DataFrame, spark: SparkSession) -> str:
    """Choose the frame's layouts under the session's present settings; why these cannot be met, or nothing."""
    return str(_rule(spark).decide(frame._jdf))


def taken_counts(spark: SparkSession) -> list[Mapping[str, Any]]:
    """Counts by alternate since the last call."""
    counts: list[Mapping[str, Any]] = json.loads(_rule(spark).takeCounts())
    return counts


def taken_choices(spark: SparkSession) -> list[float]:
    """Milliseconds that each choice took since the last call."""
    choices: list[float] = json.loads(_rule(spark).takeChoices())
    return choices


def forget_freshness(spark: SparkSession) -> None:
    """Look at the alternates again when the next query comes."""
    _rule(spark).forget()


def _rule(spark: SparkSession) -> Any:
    context: Any = spark.sparkContext
    return context._jvm.relayout.spark.Routing


def _present(loader: Any) -> bool:
    try:
        loader.loadClass(EXTENSION)
    except Exception as error:
        failure = java_failure(error)
        if failure is not None and failure.is_a("ClassNotFoundException"):
            return False
        raise
    return True


def _compiled(spark: SparkSession, text: str) -> dict[str, bytes]:
    """Class files, by the compiler that Spark uses for its own generated code."""
    context: Any = spark.sparkContext
    compiler = context._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(context._jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.cook(text)
    return {str(name): bytes(content) for name, content in compiler.getBytecodes().items()}


def _no_classes(context: Any) -> Any:
    return context._gateway.new_array(context._jvm.java.lang.Class, 0)


def _no_objects(context: Any) -> Any:
    return context._gateway.new_array(context._jvm.java.lang.Object, 0)
