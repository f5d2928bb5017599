"""A validated file → the values; fills in what was left out and resolves paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote

from relayout.config import document as written
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
from relayout.config.yaml_text import Document

_SQLITE = "jdbc:sqlite:"


def build(file: written.FileSection, document: Document, base_dir: str) -> Config:
    """The frozen configuration of a file without problems."""
    warehouse = _warehouse(file.warehouse, base_dir)
    return Config(
        file=document.file,
        base_dir=base_dir,
        warehouse=warehouse,
        namespace=file.namespace,
        catalog=_catalog(file.catalog, warehouse, base_dir),
        spark=Spark(file.spark.master, file.spark.driver_memory, file.spark.task_memory, dict(file.spark.conf)),
        defaults=Defaults(**file.defaults.model_dump()),
        tables={name: _table(name, table, document.line(("tables", name))) for name, table in file.tables.items()},
        streams={
            name: _stream(name, stream, document.line(("streams", name))) for name, stream in file.streams.items()
        },
    )


def _warehouse(text: str, base_dir: str) -> str:
    if text.startswith("s3://"):
        return text.rstrip("/")
    path = unquote(text.removeprefix("file://")) if text.startswith("file://") else os.path.expanduser(text)
    return os.path.normpath(os.path.join(base_dir, path))


def _catalog(section: written.CatalogSection, warehouse: str, base_dir: str) -> Catalog:
    uri = section.uri or ""
    if section.type == "jdbc" and not uri:
        uri = f"{_SQLITE}{warehouse}/catalog.db"
    elif uri.startswith(_SQLITE) and not uri.startswith(_SQLITE + "file:"):
        path, mark, options = uri.removeprefix(_SQLITE).partition("?")
        uri = _SQLITE + os.path.normpath(os.path.join(base_dir, os.path.expanduser(path))) + mark + options
    return Catalog(section.name, section.type, uri, dict(section.properties))


def _keys(section: written.PartitionsSection) -> tuple[PartitionKey, ...]:
    return tuple(PartitionKey(key.name, key.type, key.transform) for key in section.keys)


def _table(name: str, section: written.TableSection, line: int) -> Table:
    keys = _keys(section.partitions)
    identity = [key.name for key in keys if key.transform == "identity"]
    batches = tuple(identity if section.batch_partition_columns is None else section.batch_partition_columns)
    tracked = batches if section.incremental_keys is None else tuple(section.incremental_keys)
    return Table(
        name=name,
        source=tuple(section.source or ()),
        format=section.format,
        schema=dict(section.schema_),
        columns=dict(section.columns),
        partitions=keys,
        style=section.partitions.style,
        sort=tuple(section.sort),
        batch_partition_columns=batches,
        incremental_keys=tracked,
        on_removed=section.on_removed,
        alternates=tuple(_alternate(alternate, batches) for alternate in section.alternate_partitions),
        policy=Policy(**section.policy.model_dump()),
        line=line,
    )


def _alternate(section: written.AlternateSection, table_batches: tuple[str, ...]) -> Alternate:
    """An alternate left alone follows its table's batches, so that it is refreshed in the same steps."""
    batches = table_batches if section.batch_partition_columns is None else tuple(section.batch_partition_columns)
    return Alternate(
        name=section.name,
        partitions=_keys(section.partition),
        sort=tuple(section.sort),
        cluster=Cluster(section.cluster.curve, tuple(section.cluster.by)) if section.cluster else None,
        batch_partition_columns=batches,
        incremental_keys=batches if section.incremental_keys is None else tuple(section.incremental_keys),
    )


def _stream(name: str, section: written.StreamSection, line: int) -> Stream:
    source: Mapping[str, Mapping[str, str] | tuple[str, ...]]
    if section.from_.kafka is not None:
        source = {"kafka": dict(section.from_.kafka)}
    else:
        source = {"files": tuple(section.from_.files or ())}
    return Stream(
        name=name,
        table=section.table or name,
        source=source,
        envelope=section.envelope,
        key=tuple(section.key),
        sequence=tuple(section.sequence),
        deletes=section.deletes,
        commit_interval_seconds=section.commit_interval,
        file_prefix=section.file_prefix,
        tombstones_days=section.tombstones,
        dead_letters=section.dead_letters or f"{name}_dead",
        line=line,
    )
