"""What must hold between keys; judged on the text as written, so that it is said together with everything else.

Parts of another shape than expected are passed over here: the validator has already named them.
"""

from __future__ import annotations

import re
from typing import Any

from relayout.config import allowed, hints, words
from relayout.config.yaml_text import Document, Path

_TIMES = ("year", "month", "day", "hour")


def check(document: Document) -> None:
    """Add a problem for everything that does not fit together."""
    data = _mapping(document.data)
    if not {"tables", "streams", "warehouse"} & set(data):
        document.problem((), "declares nothing", "declare a table below `tables:`")
    _warehouse_and_catalog(document, data)
    _settings(document, ("spark", "conf"), _mapping(data.get("spark")).get("conf"), allowed.refused_spark_setting)
    _settings(
        document,
        ("catalog", "properties"),
        _mapping(data.get("catalog")).get("properties"),
        allowed.refused_catalog_property,
    )
    for name, table in _mapping(data.get("tables")).items():
        _table(document, ("tables", name), _mapping(table))
    for name, stream in _mapping(data.get("streams")).items():
        _stream(document, name, _mapping(stream), _mapping(data.get("tables")))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _settings(document: Document, path: Path, settings: Any, refused: Any) -> None:
    for key, value in _mapping(settings).items():
        if isinstance(value, dict | list):
            continue
        finding = refused(key, str(value))
        if finding:
            document.problem((*path, key), *finding)


def _warehouse_and_catalog(document: Document, data: dict[str, Any]) -> None:
    warehouse = data.get("warehouse", "./lake")
    remote = False
    if isinstance(warehouse, str):
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", warehouse)
        remote = bool(scheme) and scheme is not None and scheme[1] != "file"
        if not warehouse.strip() or "\0" in warehouse:
            document.problem(("warehouse",), "is not a folder", "write a folder or s3://bucket/prefix")
        elif scheme and scheme[1].lower() in ("s3a", "s3n"):
            document.problem(("warehouse",), f"starts with {scheme[0]}", "write s3://")
        elif scheme and scheme[1] not in ("s3", "file"):
            document.problem(("warehouse",), f"{scheme[0]} is not supported", "write a folder or s3://bucket/prefix")
        elif scheme and scheme[1] == "s3" and not re.match(r"s3://[^/]+", warehouse):
            document.problem(("warehouse",), "names no bucket", "write s3://bucket/prefix")
    _catalog(document, _mapping(data.get("catalog")), remote)


def _catalog(document: Document, catalog: dict[str, Any], remote: bool) -> None:
    name, kind, uri = catalog.get("name", "lake"), catalog.get("type", "jdbc"), catalog.get("uri")
    if isinstance(name, str) and (not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name) or name == "spark_catalog"):
        document.problem(
            ("catalog", "name"), f"{words.shown(name)} cannot name a catalog", "use a plain word such as lake"
        )
    here: Path = ("catalog", "uri")
    if kind == "hadoop" and remote:
        document.problem(("catalog", "type"), "needs a warehouse on a disk", "use a jdbc, rest, hive or glue catalog")
    if uri is None:
        if kind == "jdbc" and remote:
            document.problem(here, "is needed for a warehouse on S3", "write `uri: jdbc:postgresql://host/database`")
        elif kind in ("rest", "hive"):
            example = "http://127.0.0.1:8181" if kind == "rest" else "thrift://127.0.0.1:9083"
            document.problem(here, f"is needed for a {kind} catalog", f"write an address such as {example}")
        return
    if not isinstance(uri, str):
        return
    if kind == "jdbc":
        _jdbc_uri(document, here, uri)
    elif kind == "rest" and not re.match(r"https?://[^/]", uri):
        document.problem(here, "is not the address of a REST catalog", "write http://host:port or https://host")
    elif kind == "hive" and not re.match(r"thrift://[^/]", uri):
        document.problem(here, "is not the address of a Hive metastore", "write thrift://host:port")


def _jdbc_uri(document: Document, here: Path, uri: str) -> None:
    if re.match(r"(sqlite|postgresql)(\+\w+)?://", uri):
        document.problem(here, "is in SQLAlchemy's form", "write jdbc:sqlite:PATH or jdbc:postgresql://host/database")
    elif not re.match(r"jdbc:(sqlite:.|postgresql:.)", uri):
        document.problem(
            here, "is not a JDBC address known here", "write jdbc:sqlite:PATH or jdbc:postgresql://host/database"
        )
    elif re.match(r"jdbc:sqlite:(:memory:|file::memory:|file:.*mode=memory)", uri):
        document.problem(here, "is a database in memory, which other processes cannot see", "write jdbc:sqlite:PATH")
    elif re.search(
        r"[?&](socketFactory|sslfactory|authenticationPluginClassName|sslpasswordcallback|\w*class\w*)=",
        uri,
        re.IGNORECASE,
    ):
        document.problem(here, "names code to load", "remove that parameter; a configuration cannot load code")


def _table(document: Document, path: Path, table: dict[str, Any]) -> None:
    _keys(document, (*path, "partitions", "keys"), _mapping(table.get("partitions")).get("keys"))
    _columns(document, path, table)
    for section in ("schema", "columns"):
        _unique(document, (*path, section), list(_mapping(table.get(section))))
        if "" in _mapping(table.get(section)):
            document.problem((*path, section, ""), "is an empty column name", "name a column")
    seen: dict[str, int] = {}
    for index, alternate in enumerate(_list(table.get("alternate_partitions"))):
        here: Path = (*path, "alternate_partitions", index)
        parts = _mapping(alternate)
        name = parts.get("name")
        if isinstance(name, str):
            if name in seen:
                first = document.line((*path, "alternate_partitions", seen[name], "name"))
                also = f" (also on line {first})" if first else ""
                document.problem(
                    (*here, "name"), f"{words.shown(name)} is used twice{also}", "give each alternate its own name"
                )
            seen.setdefault(name, index)
        _keys(document, (*here, "partition", "keys"), _mapping(parts.get("partition")).get("keys"))
        _columns(document, here, parts)
        if parts.get("sort") and parts.get("cluster"):
            document.problem((*here, "cluster"), "contradicts `sort`", "keep one of the two")
        _unique(document, (*here, "cluster", "by"), _mapping(parts.get("cluster")).get("by"))


def _columns(document: Document, path: Path, section: dict[str, Any]) -> None:
    for key in ("batch_partition_columns", "incremental_keys"):
        _unique(document, (*path, key), section.get(key))
    sort = section.get("sort")
    names = [
        re.sub(r"\s+(asc|desc)$", "", item, flags=re.IGNORECASE) if isinstance(item, str) else item
        for item in _list(sort)
    ]
    _unique(document, (*path, "sort"), names)


def _unique(document: Document, path: Path, names: Any) -> None:
    seen: set[str] = set()
    for index, name in enumerate(_list(names)):
        if not isinstance(name, str):
            continue
        if name.casefold() in seen:
            item: str | int = name if path[-1] in ("schema", "columns") else index
            document.problem((*path, item), f"{words.shown(name)} is named twice", "keep one of the two")
        seen.add(name.casefold())


def _keys(document: Document, path: Path, keys: Any) -> None:
    """The same column with the same transform twice is refused, as are two time transforms of one column."""
    seen: set[tuple[str, str]] = set()
    for index, key in enumerate(_list(keys)):
        parts = {"name": key} if isinstance(key, str) else _mapping(key)
        name = parts.get("name")
        try:
            transform = words.transform(parts.get("transform", "identity"))
        except words.Wrong:
            continue
        kind = "time" if transform in _TIMES else transform.partition("[")[0]
        if not isinstance(name, str):
            continue
        if (name.casefold(), kind) in seen:
            document.problem((*path, index), f"{words.shown(name)} is already a key this way", "keep one of the two")
        seen.add((name.casefold(), kind))


def _stream(document: Document, name: str, stream: dict[str, Any], tables: dict[str, Any]) -> None:
    path: Path = ("streams", name)
    target = stream.get("table", name)
    if isinstance(target, str) and target not in tables:
        near = hints.value_hint(target, tables) if tables else f"declare `{target}:` below `tables:`"
        document.problem((*path, "table"), f"table {words.shown(target)} is not declared", near)
    if stream.get("dead_letters") is not None and stream.get("dead_letters") == target:
        document.problem((*path, "dead_letters"), "is the stream's own table", "name another table")
    if not stream.get("key") and stream.get("envelope", "debezium") != "append":
        document.problem((*path, "key"), "is needed to tell rows apart", "write `key: [id]`, or `envelope: append`")
    for part in ("key", "sequence"):
        _unique(document, (*path, part), stream.get(part))
    origin = stream.get("from")
    if isinstance(origin, dict):
        _origin(document, (*path, "from"), origin)


def _origin(document: Document, path: Path, origin: dict[str, Any]) -> None:
    given = [kind for kind in ("kafka", "files") if origin.get(kind) is not None]
    if len(given) != 1:
        what = "names neither kafka nor files" if not given else "names both kafka and files"
        document.problem(path, what, "write one of the two")
    kafka = origin.get("kafka")
    if not isinstance(kafka, dict):
        return
    if not {"bootstrap.servers", "kafka.bootstrap.servers"} & set(kafka):
        document.problem((*path, "kafka"), "lacks bootstrap.servers", "write `bootstrap.servers: host:9092`")
    if len({"subscribe", "subscribePattern", "assign"} & set(kafka)) != 1:
        document.problem((*path, "kafka"), "should say what to read, in one way", "write `subscribe: topic`")
    _settings(document, (*path, "kafka"), kafka, allowed.refused_kafka_option)
