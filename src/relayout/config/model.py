"""The values that a configuration file becomes.

Invariants: every default is filled in, every size is bytes and every duration a number, every path is absolute.
Mappings are typed read-only and nobody changes them; they stay plain dicts so that values can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relayout.config.quantities import memory_bytes

CATALOG_TYPES = ("jdbc", "rest", "hadoop", "hive", "glue")
FORMATS = ("json", "csv", "parquet")
STYLES = ("hive",)
ON_REMOVED = ("keep", "delete")
CURVES = ("zorder", "hilbert")
ENVELOPES = ("debezium", "debezium-flat", "upsert", "before-after", "append")
DELETES = ("resolved", "equality")

LEDGER_TABLE = "relayout_ledger"
ROUTING_TABLE = "relayout_routing"
OWN_TABLES = (LEDGER_TABLE, ROUTING_TABLE)
"""What relayout keeps beside the tables that are declared."""

ALTERNATE_PREFIX = "_mv_"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Where table metadata lives; `uri` is empty only for catalogs that need none (hadoop, glue)."""

    name: str = "lake"
    type: str = "jdbc"
    uri: str = field(default="", repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Spark:
    """How a session is started; memory texts are ones that Spark itself accepts."""

    master: str = "local[*]"
    driver_memory: str = "4g"
    task_memory: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def driver_memory_bytes(self) -> int:
        return memory_bytes(self.driver_memory)

    @property
    def task_memory_bytes(self) -> int:
        return memory_bytes(self.task_memory)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for every table."""

    format_version: int = 2
    target_file_mb: int = 512
    retries: int = 3
    retry_delay_ms: int = 1000
    routing_budget_ms: int = 150


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One level of a layout; `name` is the source column and `transform` is in Iceberg's spelling."""

    name: str
    type: str | None = None
    transform: str = "identity"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Rows ordered along a curve through several columns."""

    curve: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternate:
    """Another layout of the same rows; at most one of `sort` and `cluster` is set."""

    name: str
    partitions: tuple[PartitionKey, ...] = ()
    sort: tuple[str, ...] = ()
    cluster: Cluster | None = None
    batch_partition_columns: tuple[str, ...] = ()
    incremental_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """When upkeep acts by itself; None means that it never does."""

    compact_below_mb: int | None = None
    expire_days: float | None = None
    max_bytes_per_run: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One declared table; without `source` it is a stream's target or filled by hand.

    `source` is as written, `columns` holds Spark SQL expressions (constants are already literals), `line` is 0 where
    the declaration did not come from a file.
    """

    name: str
    source: tuple[str, ...] = ()
    format: str | None = None
    schema: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[PartitionKey, ...] = ()
    style: str = "hive"
    sort: tuple[str, ...] = ()
    batch_partition_columns: tuple[str, ...] = ()
    incremental_keys: tuple[str, ...] = ()
    on_removed: str = "keep"
    alternates: tuple[Alternate, ...] = ()
    policy: Policy = field(default_factory=Policy)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Stream:
    """One declared change stream; `source` holds exactly one of `kafka` (options) and `files` (patterns)."""

    name: str
    table: str
    source: Mapping[str, Mapping[str, str] | tuple[str, ...]] = field(repr=False)
    envelope: str = "debezium"
    key: tuple[str, ...] = ()
    sequence: tuple[str, ...] = ()
    deletes: str = "resolved"
    commit_interval_seconds: float = 30.0
    file_prefix: str = "relayout"
    tombstones_days: float = 7.0
    dead_letters: str = ""
    line: int = 0

    @property
    def kafka(self) -> Mapping[str, str]:
        """Kafka options, empty for a stream of files."""
        options = self.source.get("kafka", {})
        return options if isinstance(options, Mapping) else {}

    @property
    def files(self) -> tuple[str, ...]:
        """Patterns of change files, empty for a stream from Kafka."""
        patterns = self.source.get("files", ())
        return patterns if isinstance(patterns, tuple) else ()


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration: `warehouse` is an absolute path or `s3://bucket/prefix`, `file` is as it was given."""

    file: str
    base_dir: str
    warehouse: str
    namespace: str
    catalog: Catalog
    spark: Spark
    defaults: Defaults
    tables: Mapping[str, Table]
    streams: Mapping[str, Stream]
