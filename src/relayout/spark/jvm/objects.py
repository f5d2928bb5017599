"""Iceberg's own client of an object store, which is not the one that kernels and read-only verbs use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from relayout.spark.jvm.gateway import java_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S3_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"


def write_object(spark: SparkSession, address: str, body: bytes, properties: Mapping[str, str]) -> None:
    """Make an object of these bytes as Spark makes metadata files; `properties` are the catalog's."""
    context: Any = spark.sparkContext
    jvm = context._jvm
    told = jvm.java.util.HashMap()
    for name, value in properties.items():
        told.put(name, value)
    try:
        store = jvm.org.apache.iceberg.CatalogUtil.loadFileIO(S3_FILE_IO, told, context._jsc.hadoopConfiguration())
        try:
            stream = store.newOutputFile(address).createOrOverwrite()
            stream.write(bytearray(body))
            stream.close()
        finally:
            store.close()
    except Exception as error:
        raise java_failure(error) or error from error
