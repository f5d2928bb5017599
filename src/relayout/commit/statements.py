"""Statements that users write: Spark runs them, whatever they change is theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.errors import UsageError
from relayout.table.names import quote_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_statement(spark: SparkSession, catalog: str, namespace: str, text: str) -> DataFrame:
    """Run a query, DML or DDL in which bare names mean tables of the namespace; a query is only prepared.

    Spark's own words come back as a UsageError.
    """
    from pyspark.errors import PySparkException

    use_namespace(spark, catalog, namespace)
    try:
        return spark.sql(text)
    except PySparkException as error:
        raise refused(error, text) from error


def use_namespace(spark: SparkSession, catalog: str, namespace: str) -> None:
    """Let bare names mean tables of the namespace, or of the catalog while there is no such namespace."""
    from relayout.spark.jvm.gateway import make_active

    home = ".".join(quote_spark(part) for part in (catalog, *namespace.split(".")))
    make_active(spark)
    spark.sql(f"USE {home}" if spark.catalog.databaseExists(home) else f"SET CATALOG {quote_spark(catalog)}")


def refused(error: Exception, text: str) -> UsageError:
    """What Spark says about a statement, without its stack."""
    message = str(error).strip().split("\n\n", 1)[0].split("; line ", 1)[0]
    return UsageError(
        f"Spark refuses the statement: {' '.join(message.split())}",
        where=" ".join(text.split())[:200],
        next="correct the statement; `relayout status` lists the tables",
    )
