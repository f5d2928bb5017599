"""Where a journey is walked: each place has a catalog, a store and a master, and starts the servers that these need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosscheck.journey import Job
from crosscheck.services.moto import moto
from crosscheck.services.postgres import postgres
from crosscheck.services.rest import rest_catalog
from crosscheck.services.standalone import executors_python, standalone
from crosscheck.services.store import BUCKET
from crosscheck.services.versitygw import versitygw

SPARK = {"master": "local[2]", "driver_memory": "1g", "task_memory": "512m"}
WAREHOUSE = f"s3://{BUCKET}/house"
SOURCES = f"s3://{BUCKET}/in"
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Folders:
    """`fresh` belongs to one walk, `tools` keeps what was fetched and built for all of them."""

    fresh: Path
    tools: Path

    @property
    def warehouse(self) -> str:
        return str(self.fresh / "house")

    @property
    def sources(self) -> str:
        return str(self.fresh / "in")

    @property
    def sqlite(self) -> str:
        return f"jdbc:sqlite:{self.fresh / 'catalog.db'}"


@dataclass(frozen=True, slots=True)
class Place:
    """One place: `job` starts what it needs and yields the journey's job without a judge."""

    name: str
    what: str
    job: Callable[[Folders], AbstractContextManager[Job]]


def _config(warehouse: str, catalog: Mapping[str, Any], spark: Mapping[str, Any] = SPARK) -> dict[str, Any]:
    return {"warehouse": warehouse, "catalog": dict(catalog), "spark": dict(spark), "defaults": {"retries": 1}}


@contextmanager
def _sqlite(folders: Folders) -> Iterator[Job]:
    # Nothing is said about the catalog: this is the default.
    yield Job(_config(folders.warehouse, {}), folders.sources)


@contextmanager
def _postgres(folders: Folders) -> Iterator[Job]:
    with postgres(folders.fresh) as database:
        catalog = {"type": "jdbc", "uri": database.jdbc_uri, "properties": database.properties}
        yield Job(_config(folders.warehouse, catalog), folders.sources)


@contextmanager
def _rest(folders: Folders) -> Iterator[Job]:
    with rest_catalog(folders.fresh, folders.tools / "rest", f"file:{folders.warehouse}", {}) as address:
        yield Job(_config(folders.warehouse, {"type": "rest", "uri": address}), folders.sources)


@contextmanager
def _hadoop(folders: Folders) -> Iterator[Job]:
    yield Job(_config(folders.warehouse, {"type": "hadoop"}), folders.sources)


@contextmanager
def _moto(folders: Folders) -> Iterator[Job]:
    with moto(folders.fresh) as store:
        catalog = {"type": "jdbc", "uri": folders.sqlite, "properties": store.properties}
        yield Job(_config(WAREHOUSE, catalog), SOURCES, store)


@contextmanager
def _moto_sources(folders: Folders) -> Iterator[Job]:
    with moto(folders.fresh) as store:
        yield Job(_config(folders.warehouse, {"properties": store.properties}), SOURCES, store)


@contextmanager
def _versitygw(folders: Folders) -> Iterator[Job]:
    with versitygw(folders.fresh, folders.tools) as store, postgres(folders.fresh) as database:
        properties = {**store.properties, **database.properties}
        catalog = {"type": "jdbc", "uri": database.jdbc_uri, "properties": properties}
        yield Job(_config(WAREHOUSE, catalog), SOURCES, store)


@contextmanager
def _versitygw_rest(folders: Folders) -> Iterator[Job]:
    with versitygw(folders.fresh, folders.tools) as store:
        properties = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", **store.properties}
        with rest_catalog(folders.fresh, folders.tools / "rest", WAREHOUSE, properties) as address:
            catalog = {"type": "rest", "uri": address, "properties": store.properties}
            yield Job(_config(WAREHOUSE, catalog), SOURCES, store)


@contextmanager
def _standalone(folders: Folders) -> Iterator[Job]:
    with standalone(folders.fresh, WORKERS) as cluster:
        spark = {**SPARK, "master": cluster.master, "conf": {"spark.executor.memory": "512m"}}
        yield Job(
            _config(folders.warehouse, {}, spark), folders.sources, python=executors_python(folders.fresh / "python")
        )


PLACES = (
    Place("sqlite", "the default: SQLite JDBC catalog, sources and warehouse on this disk", _sqlite),
    Place("postgres", "PostgreSQL JDBC catalog", _postgres),
    Place("rest", "Iceberg REST catalog, the project's reference server", _rest),
    Place("hadoop", "Hadoop catalog, a plain folder", _hadoop),
    Place("moto-sources", "sources on S3 (moto), warehouse on this disk", _moto_sources),
    Place("moto", "sources and warehouse on S3 (moto), SQLite JDBC catalog", _moto),
    Place("versitygw", "sources and warehouse on S3 (versitygw), PostgreSQL JDBC catalog", _versitygw),
    Place("versitygw-rest", "sources and warehouse on S3 (versitygw), Iceberg REST catalog", _versitygw_rest),
    Place("standalone", f"Spark standalone cluster: a master and {WORKERS} workers", _standalone),
)
