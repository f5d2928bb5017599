"""`relayout.yaml` → one frozen `Config`, or all that is wrong with it at once, each with file, line and key."""

from relayout.config.load import from_mapping, json_schema, load
from relayout.config.model import (
    Alternate,
    Catalog,
    Cluster,
    Config,
    Defaults,
    PartitionKey,
    Policy,
    Spark,
    Stream,
    Table,
)

__all__ = [
    "Alternate",
    "Catalog",
    "Cluster",
    "Config",
    "Defaults",
    "PartitionKey",
    "Policy",
    "Spark",
    "Stream",
    "Table",
    "from_mapping",
    "json_schema",
    "load",
]
