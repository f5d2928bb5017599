"""What type a Spark SQL expression has over columns of known types, as Spark's own analyser says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from relayout.errors import UsageError
from relayout.table.names import quote_spark
from relayout.table.schemas import TableSchema
from relayout.table.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType


def types_of(spark: SparkSession, schema: TableSchema, expressions: Mapping[str, str]) -> dict[str, str]:
    """The Iceberg type of each expression; UsageError with Spark's own words where one has none."""
    ddl = ", ".join(f"{quote_spark(column.name)} {spark_type(column.type)}" for column in schema)
    empty = spark.createDataFrame([], ddl)
    found: dict[str, str] = {}
    for name, text in expressions.items():
        try:
            found[name] = iceberg_text(empty.selectExpr(text).schema.fields[0].dataType)
        except Exception as error:
            raise UsageError(
                f"the expression of column {name!r} cannot be computed: {_first_line(error)}",
                where=text,
                next="correct the expression under `columns`",
            ) from error
    return found


def iceberg_text(kind: DataType) -> str:
    """A Spark type in Iceberg's words; Spark's own `timestamp` is a moment and so has a zone there."""
    from pyspark.sql import types as spark_types

    match kind:
        case spark_types.ArrayType():
            return f"list<{iceberg_text(kind.elementType)}>"
        case spark_types.MapType():
            return f"map<{iceberg_text(kind.keyType)}, {iceberg_text(kind.valueType)}>"
        case spark_types.StructType():
            inner = ", ".join(f"{quote_spark(field.name)}: {iceberg_text(field.dataType)}" for field in kind.fields)
            return f"struct<{inner}>"
        case spark_types.TimestampType():
            return "timestamptz"
        case spark_types.TimestampNTZType():
            return "timestamp"
        case spark_types.ByteType() | spark_types.ShortType() | spark_types.IntegerType():
            return "int"
        case spark_types.LongType():
            return "long"
        case spark_types.NullType() | spark_types.VarcharType() | spark_types.CharType():
            return "string"
        case _:
            return kind.simpleString()


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
