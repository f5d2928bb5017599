"""What somebody who wrote an unknown key or value probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_KEYS = "write `partitions: {keys: [...]}`"
_BATCH = "did you mean `batch_partition_columns`?"
_INCREMENTAL = "did you mean `incremental_keys`?"
_NO_FILES = "remove it: the catalog knows an alternate's files, and its layout comes from `partition.keys`"


def _same(advice: str, *spellings: str) -> dict[str, str]:
    return dict.fromkeys(spellings, advice)


def _means(key: str, *spellings: str) -> dict[str, str]:
    return dict.fromkeys(spellings, f"did you mean `{key}`?")


POINTED: dict[str, dict[str, str]] = {
    "file": _means("tables", "table")
    | _means("streams", "stream", "sink", "sinks")
    | _means("warehouse", "location", "path", "root", "base_dir", "directory")
    | _means("namespace", "database", "db", "schema"),
    "catalog": _means("uri", "url", "jdbc", "endpoint")
    | _means("properties", "options", "props", "config")
    | _same("set `warehouse` at the top of the file", "warehouse")
    | _same("choose with `type`; classes cannot be named here", "impl", "catalog-impl", "catalog_impl", "io-impl"),
    "spark": _means("driver_memory", "memory", "heap") | _means("conf", "config", "configs", "options", "properties"),
    "defaults": _means("target_file_mb", "target_mb", "target_file_size", "file_size_mb", "target_file_size_mb")
    | _means("retries", "tries", "max_retries", "attempts")
    | _means("format_version", "format", "version"),
    "table": _means(
        "source", "pattern", "patterns", "file", "files", "path", "paths", "glob", "input", "sources", "location"
    )
    | _means("alternate_partitions", "partition_alternates", "alternates", "alternate", "alternate_partition")
    | _means("alternate_partitions", "partitions_alternate", "alternative_partitions", "indexes", "materialized_views")
    | _same(_KEYS, "partition_by", "partitioned_by", "partition_columns", "partition_keys", "keys", "partitioning")
    | _same("a table has `partitions`, only an alternate has `partition`", "partition")
    | _same(_BATCH, "batch_columns", "batch_keys", "batch_by", "batches", "batch", "batch_partitions")
    | _same(_INCREMENTAL, "incremental_columns", "incremental_key", "incremental", "incremental_by")
    | _means("sort", "sort_by", "order_by", "order", "sort_order", "sorted_by")
    | _same(
        "only an alternate has `cluster`; use `sort`, or `relayout optimize TABLE --hilbert`", "cluster", "cluster_by"
    )
    | _same("only an alternate has `cluster`; use `sort`, or `relayout optimize TABLE --zorder`", "zorder", "hilbert")
    | _means("schema", "types", "column_types", "fields")
    | _means("columns", "expressions", "constants", "mapping", "column")
    | _means("format", "type", "file_format", "source_format")
    | _means("on_removed", "removed", "on_remove", "on_delete"),
    "partitions": _means("keys", "key", "columns", "fields", "by")
    | _same("remove it: the layout comes from `keys`", "pattern", "path"),
    "key": _means("name", "column", "col", "field", "source")
    | _means("type", "data_type", "dtype")
    | _means("transform", "function", "func", "bucket", "truncate"),
    "alternate": _same(_NO_FILES, "pattern", "source", "path", "location", "files")
    | _same("an alternate has `partition`, only a table has `partitions`", "partitions")
    | _same(
        "write `partition: {keys: [...]}`",
        "partition_by",
        "partition_columns",
        "partition_keys",
        "keys",
        "partitioned_by",
    )
    | _same(_BATCH, "batch_columns", "batch_keys", "batch_by", "batches", "batch", "batch_partitions")
    | _same(_INCREMENTAL, "incremental_columns", "incremental_key", "incremental", "incremental_by")
    | _means("sort", "sort_by", "order_by", "order", "sort_order")
    | _same("write `cluster: {curve: zorder, by: [...]}`", "zorder", "cluster_by")
    | _same("write `cluster: {curve: hilbert, by: [...]}`", "hilbert")
    | _same("set them once, on the table", "schema", "columns", "format", "policy", "on_removed"),
    "cluster": _means("by", "columns", "keys", "on") | _means("curve", "type", "kind", "strategy"),
    "policy": _means("compact_below_mb", "compact", "min_file_mb", "compact_mb")
    | _means("expire_days", "expire", "retention", "retention_days")
    | _means("max_bytes_per_run", "max_bytes", "budget"),
    "stream": _means("from", "source", "input", "kafka", "files")
    | _means("table", "target", "into", "to")
    | _means("key", "keys", "primary_key", "merge_keys", "id", "ids")
    | _means("sequence", "sequence_by", "order_by", "sequence_column", "sequence_columns", "version")
    | _means("envelope", "format", "type")
    | _means("commit_interval", "interval", "trigger", "trigger_interval")
    | _means("file_prefix", "prefix", "file_name_prefix")
    | _means("deletes", "delete_mode", "mode")
    | _means("tombstones", "tombstone", "tombstone_retention")
    | _means("dead_letters", "dlq", "dead_letter", "dead_letter_table", "dead_letter_queue")
    | _same("remove it: a stream resumes from its table", "checkpoint", "checkpoint_location"),
    "from": _means("kafka", "topic", "topics", "broker")
    | _means("files", "file", "source", "pattern", "path", "folder"),
}

_MEANT_VALUES = {
    "ndjson": "json",
    "jsonl": "json",
    "json_lines": "json",
    "tsv": "csv",
    "pq": "parquet",
    "sqlite": "jdbc",
    "sql": "jdbc",
    "postgres": "jdbc",
    "postgresql": "jdbc",
    "z-order": "zorder",
    "z_order": "zorder",
    "ignore": "keep",
    "remove": "delete",
    "debezium_flat": "debezium-flat",
    "flat": "debezium-flat",
    "before_after": "before-after",
    "insert": "append",
    "merge": "upsert",
}


def key_hint(section: str, written: str, known: Iterable[str]) -> str:
    """A pointed hint for spellings that people bring along, else the nearest known key, else all of them."""
    names = sorted(known)
    plain = written.strip().casefold()
    pointed = POINTED.get(section, {})
    advice = pointed.get(plain) or pointed.get(plain.replace("-", "_"))
    if advice:
        return advice
    near = difflib.get_close_matches(plain.replace("-", "_")[:80], names, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{near[0]}`?"
    return "known here: " + ", ".join(names)


def value_hint(written: object, allowed: Iterable[str]) -> str:
    """The allowed value that was meant, or all of them."""
    names = list(allowed)
    if isinstance(written, str):
        plain = written.strip().casefold()
        meant = _MEANT_VALUES.get(plain)
        near = [meant] if meant in names else difflib.get_close_matches(plain[:80], names, n=1, cutoff=0.6)
        if near:
            return f"did you mean `{near[0]}`?"
    return "one of: " + ", ".join(names)
