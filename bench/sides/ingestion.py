"""Loading JSON files batch by batch into a partitioned table: three ways to do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from bench.income import COLUMNS, Income
from bench.rounds import Prepared
from bench.sides.checksum import of_files, of_table
from bench.sides.lakes import NAMESPACE, SPARK, lake_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE, WARM_UP_TABLE = "regional_income", "warm_up"
WARM_UP = Income(years=3, regions=100, lines=10)
ALL_COLUMNS = ("year", *COLUMNS)
TARGET_FILE_BYTES = 512 << 20
PEER = "Spark: read.schema(…).json(…) and writeTo(…).overwritePartitions() for each batch"


@dataclass(frozen=True, slots=True)
class Loading:
    """What is loaded, how it is partitioned, how many cores everybody gets, and how sessions are set."""

    source: Income
    partitions: Sequence[str]
    cores: int
    session: Mapping[str, str] = field(default_factory=lambda: SPARK)

    def with_relayout(self, folder: Path) -> Prepared:
        """Plan, load, commit and ledger."""
        lake = lake_in(
            folder, {WARM_UP_TABLE: self._declared(WARM_UP), TABLE: self._declared(self.source)}, self.session
        )
        lake.apply(tables=[WARM_UP_TABLE])

        def work() -> None:
            receipt = lake.apply(tables=[TABLE])
            assert receipt.complete, receipt.to_json()

        return Prepared(work, lambda: of_table(lake.table(TABLE), ALL_COLUMNS))

    def _declared(self, source: Income) -> dict[str, Any]:
        source.batches()
        return {
            "source": source.pattern,
            "schema": dict(COLUMNS),
            "partitions": {"keys": [{"name": "year", "type": "int"}, *self.partitions[1:]]},
            "batch_partition_columns": ["year"],
        }

    def with_spark(self, folder: Path) -> Prepared:
        """The same table and the same batches, each replaced by Spark's own writer."""
        lake = lake_in(folder, {TABLE: {}}, self.session)
        lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
        spark = lake.spark
        self._by_spark(spark, f"{NAMESPACE}.{WARM_UP_TABLE}", WARM_UP)
        return Prepared(
            lambda: self._by_spark(spark, f"{NAMESPACE}.{TABLE}", self.source),
            lambda: of_table(lake.table(TABLE), ALL_COLUMNS),
        )

    def _by_spark(self, spark: SparkSession, name: str, source: Income) -> None:
        from pyspark.sql.functions import lit

        schema = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
        spark.sql(
            f"CREATE TABLE {name} ({schema}, year int) USING iceberg PARTITIONED BY ({', '.join(self.partitions)}) "
            f"TBLPROPERTIES ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd', "
            f"'write.target-file-size-bytes' = '{TARGET_FILE_BYTES}')"
        )
        for year, files in source.batches().items():
            frame = spark.read.schema(schema).json(files).withColumn("year", lit(year))
            frame.writeTo(name).overwritePartitions()

    def with_duckdb(self, folder: Path) -> Prepared:
        """The limit: no table, no commit, no ledger, only files in folders."""

        def work() -> None:
            with duckdb.connect() as connection:
                for setting in (
                    f"threads = {self.cores}",
                    "preserve_insertion_order = false",
                    "enable_progress_bar = false",
                ):
                    connection.execute(f"SET {setting}")
                for rows in self.source.selections():
                    connection.execute(
                        f"COPY ({rows}) TO '{folder}' (FORMAT parquet, COMPRESSION zstd, "
                        f"PARTITION_BY ({', '.join(self.partitions)}), WRITE_PARTITION_COLUMNS, OVERWRITE_OR_IGNORE, "
                        f"FILENAME_PATTERN 'part-{{uuid}}')"
                    )

        return Prepared(work, lambda: of_files(map(str, folder.rglob("*.parquet")), ALL_COLUMNS))
