"""Rewriting a table of small files: by relayout, by Iceberg's own action, by DuckDB alone without a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench.rounds import Prepared
from bench.sides.checksum import of_files, of_table
from bench.sides.lakes import NAMESPACE, lake_in
from bench.small_files import COLUMNS, DECLARED, SmallFiles
from relayout.api import Lake

WARM_UP = SmallFiles(rows=20_000, files=10, partitions=5)
WARM_UP_TABLE, TABLE = "warm_up", "events"


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What is rewritten and how: `order` is empty for bin-packing, else `zorder` or `hilbert` over these columns."""

    source: SmallFiles
    target_bytes: int
    order: str = ""
    by: tuple[str, ...] = ()
    after: Callable[[Lake, str], None] | None = None
    checksum: Callable[[Lake, str], object] | None = None

    def with_relayout(self, folder: Path) -> Prepared:
        """Plan, rewrite, prove, commit."""
        lake = self._lake(folder)

        def rewrite(table: str) -> None:
            options = {"rewrite_all": True, "target_file_size_bytes": self.target_bytes}
            if self.order:
                receipt = lake.optimize(table, self.order, self.by, **options)
            else:
                receipt = lake.compact(table, **options)
            assert receipt.complete, receipt.to_json()
            assert receipt.groups, "nothing was rewritten"

        return self._prepared(lake, rewrite)

    def with_iceberg(self, folder: Path) -> Prepared:
        """Iceberg's action with groups in parallel, all in one commit, as it is fastest here."""
        lake = self._lake(folder)
        cores = os.cpu_count() or 1
        options: Mapping[str, Any] = {
            "rewrite-all": "true",
            "target-file-size-bytes": self.target_bytes,
            "max-file-group-size-bytes": max(2 * self.target_bytes, self.source.size_bytes // cores + 1),
            "max-concurrent-file-group-rewrites": 8 * cores,
        }
        told = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        sort = f", strategy => 'sort', sort_order => '{self.order}({', '.join(self.by)})'" if self.order else ""

        def rewrite(table: str) -> None:
            call = f"CALL lake.system.rewrite_data_files(table => '{NAMESPACE}.{table}', options => map({told}){sort})"
            lake.sql(call).collect()

        return self._prepared(lake, rewrite)

    def with_duckdb(self, folder: Path) -> Prepared:
        """The limit: the same files copied with the same codec, no table and no commit; not for ordered rows."""
        files = [str(file) for file in self.source.made()]
        parts = "PARTITION_BY (part), WRITE_PARTITION_COLUMNS false" if self.source.partitions else "PER_THREAD_OUTPUT"

        def work() -> None:
            with duckdb.connect() as connection:
                connection.execute("SET preserve_insertion_order = false")
                connection.execute("SET enable_progress_bar = false")
                hive = "true" if self.source.partitions else "false"
                connection.execute(
                    f"COPY (SELECT * FROM read_parquet({files!r}, hive_partitioning = {hive})) TO '{folder}/out' "
                    f"(FORMAT parquet, COMPRESSION zstd, {parts})"
                )

        return Prepared(work, lambda: of_files(map(str, folder.rglob("*.parquet")), COLUMNS))

    def _lake(self, folder: Path) -> Lake:
        lake = lake_in(folder, {})
        lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
        for name, source in ((WARM_UP_TABLE, WARM_UP), (TABLE, self.source)):
            source.made()
            part = (", part bigint", "PARTITIONED BY (part)") if source.partitions else ("", "")
            lake.sql(
                f"CREATE TABLE {NAMESPACE}.{name} ({DECLARED}{part[0]}) USING iceberg {part[1]} "
                "TBLPROPERTIES ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd')"
            )
            lake.sql(
                f"CALL lake.system.add_files(table => '{NAMESPACE}.{name}', "
                f"source_table => '`parquet`.`{source.folder}`')"
            )
        if self.after is not None:
            self.after(lake, TABLE)
        return lake

    def _prepared(self, lake: Lake, rewrite: Callable[[str], None]) -> Prepared:
        rewrite(WARM_UP_TABLE)
        told = self.checksum or (lambda lake, table: of_table(lake.table(table), COLUMNS))
        return Prepared(lambda: rewrite(TABLE), lambda: told(lake, TABLE))
