"""The catalog through PyIceberg, without a JVM; nothing here creates or changes anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from relayout.config import Config
from relayout.errors import EnvironmentProblem, MissingError, RelayoutError, Retry
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

SQLITE = "jdbc:sqlite:"
POSTGRESQL = "jdbc:postgresql:"
CATALOG_TABLE = "iceberg_tables"
"""Where Iceberg's JDBC catalog keeps its tables; Java makes it with the first commit."""

LIBPQ_OPTIONS = {
    name.lower(): option
    for option, names in {
        "application_name": ("ApplicationName",),
        "connect_timeout": ("connectTimeout", "loginTimeout"),
        "sslcert": ("sslcert",),
        "sslkey": ("sslkey",),
        "sslmode": ("sslmode",),
        "sslrootcert": ("sslrootcert",),
    }.items()
    for name in names
}
"""Options of a JDBC address that matter to reading, as PostgreSQL's own library spells them."""


class CatalogReader:
    """Loads tables of one catalog; one that nobody has written to yet simply holds no tables."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._catalog: Catalog | None = None

    def load(self, name: TableName) -> Table | None:
        """The table as it is now, or None when there is none."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError

        with self._errors_told():
            if self._config.catalog.type == "hadoop":
                return _load_hadoop_table(self._config, name)
            catalog = self._opened()
            if catalog is None:
                return None
            try:
                return catalog.load_table(name.identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            except FileNotFoundError as error:
                raise MissingError(
                    f"the catalog points to metadata of {name} that does not exist",
                    where=str(error),
                    next="was the warehouse moved or deleted? restore it, or drop the table's entry from the catalog",
                ) from error
            except (ValidationError, ValueError) as error:
                raise EnvironmentProblem(
                    f"the table cannot be read: its metadata is damaged: {_first_line(error)}",
                    where=str(name),
                    next="restore the metadata file that the catalog points to, or point it to an older one",
                ) from error

    def table_names(self, namespace: str) -> list[str]:
        """Names of all tables in the namespace, sorted."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        levels = tuple(namespace.split("."))
        with self._errors_told():
            if self._config.catalog.type == "hadoop":
                root = Path(self._config.warehouse, *levels)
                return sorted(path.name for path in root.glob("*") if (path / "metadata").is_dir())
            catalog = self._opened()
            if catalog is None:
                return []
            try:
                return sorted(identifier[-1] for identifier in catalog.list_tables(levels))
            except NoSuchNamespaceError:
                return []

    def is_made(self) -> bool:
        """Whether anybody has written to the catalog yet."""
        with self._errors_told():
            if self._config.catalog.type == "hadoop":
                return Path(self._config.warehouse).is_dir()
            return self._opened() is not None

    def names_beside(self) -> tuple[str, ...]:
        """Other catalog names under which the same database holds tables; none where ours is among its names."""
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy import text

        with self._errors_told():
            catalog = self._opened()
            if not isinstance(catalog, SqlCatalog):
                return ()
            with catalog.engine.connect() as connection:
                found = connection.execute(text(f"SELECT DISTINCT catalog_name FROM {CATALOG_TABLE} ORDER BY 1"))
                names = tuple(str(row[0]) for row in found)
            return () if self._config.catalog.name in names else names

    def _opened(self) -> Catalog | None:
        if self._catalog is None and not embedded_catalog_is_missing(self._config):
            self._catalog = _open(self._config)
        return self._catalog

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        """Databases, servers and stores fail in their own words and types; users get one."""
        try:
            yield
        except RelayoutError:
            raise
        except ModuleNotFoundError as error:
            raise EnvironmentProblem(
                f"the {self._config.catalog.type} catalog needs the Python package {error.name}",
                where=f"catalog {self._config.catalog.name!r} of {self._config.file}",
                next="`pip install 'relayout[postgres]'` brings PostgreSQL's, `pip install 'relayout[aws]'` Amazon's",
            ) from error
        except Exception as error:
            raise EnvironmentProblem(
                f"the {self._config.catalog.type} catalog cannot be read: {_first_line(error)}",
                where=f"catalog {self._config.catalog.name!r} of {self._config.file}",
                next="check catalog.uri and its credentials, and that the server runs; `relayout doctor` tests it",
                retry=Retry.SAFE,
            ) from error


def embedded_catalog_file(config: Config) -> Path | None:
    """The SQLite file of the embedded catalog, or None for a catalog that is a server or a folder."""
    uri = config.catalog.uri
    if config.catalog.type != "jdbc" or not uri.startswith(SQLITE):
        return None
    path = uri.removeprefix(SQLITE).removeprefix("file:").split("?")[0]
    return Path(config.base_dir) / path


def embedded_catalog_is_missing(config: Config) -> bool:
    """Whether the embedded catalog holds no tables because nobody has made it yet."""
    file = embedded_catalog_file(config)
    if file is None:
        return False
    if not file.exists() or file.stat().st_size == 0:
        return True
    try:
        with sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True) as connection:
            found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [CATALOG_TABLE]).fetchone()
    except sqlite3.DatabaseError as error:
        raise EnvironmentProblem(
            f"the catalog cannot be read: {error}",
            where=str(file),
            next="restore this file from a backup; the tables' own metadata is not affected",
        ) from error
    return found is None


def _open(config: Config) -> Catalog | None:
    properties = {"warehouse": config.warehouse, **config.catalog.properties}
    if config.catalog.type == "jdbc":
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy import inspect

        properties |= {"uri": database_address(config), "init_catalog_tables": "false"}
        catalog = SqlCatalog(config.catalog.name, **properties)
        # PyIceberg takes a database that does not answer for an empty one; this asks again and lets the error out.
        return catalog if inspect(catalog.engine).has_table(CATALOG_TABLE) else None
    from pyiceberg.catalog import load_catalog

    if config.catalog.uri:
        properties["uri"] = config.catalog.uri
    return load_catalog(config.catalog.name, **{**properties, "type": config.catalog.type})


def database_address(config: Config) -> str:
    """The address of the catalog's database as SQLAlchemy writes it."""
    file = embedded_catalog_file(config)
    if file is not None:
        # Readers wait for their turn while other runs commit.
        return f"sqlite:///{file}?timeout=60"
    uri = config.catalog.uri
    if not uri.startswith(POSTGRESQL):
        return uri.removeprefix("jdbc:")
    place = uri.removeprefix(POSTGRESQL)
    parts = urlsplit(place if place.startswith("//") else f"//localhost/{place}")
    options = dict(parse_qsl(parts.query))
    user = options.pop("user", config.catalog.properties.get("jdbc.user", ""))
    password = options.pop("password", config.catalog.properties.get("jdbc.password", ""))
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    return f"postgresql+psycopg://{login}{parts.netloc}{parts.path}{_libpq_query(options)}"


def _libpq_query(options: Mapping[str, str]) -> str:
    """What of a JDBC address's options holds for every client."""
    kept = {LIBPQ_OPTIONS[name.lower()]: value for name, value in options.items() if name.lower() in LIBPQ_OPTIONS}
    if options.get("ssl", "").lower() == "true":
        kept.setdefault("sslmode", "verify-full")
    if schema := options.get("currentSchema"):
        kept["options"] = f"-csearch_path={schema}"
    return f"?{urlencode(kept, quote_via=quote)}" if kept else ""


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _load_hadoop_table(config: Config, name: TableName) -> Table | None:
    """The newest metadata file of a table in a folder catalog: what the version hint says, or what follows it."""
    from pyiceberg.io import load_file_io
    from pyiceberg.table import StaticTable

    location = "/".join([config.warehouse.rstrip("/"), *name.identifier])
    io = load_file_io(dict(config.catalog.properties), location)
    hint = io.new_input(f"{location}/metadata/version-hint.text")
    if not hint.exists():
        return None
    with hint.open() as content:
        version = int(content.read())
    newest = None
    while True:
        found = [
            path
            for path in (f"{location}/metadata/v{version}{end}" for end in (".metadata.json", ".gz.metadata.json"))
            if io.new_input(path).exists()
        ]
        if not found:
            break
        newest, version = found[0], version + 1
    return None if newest is None else StaticTable.from_metadata(newest, dict(config.catalog.properties))
