"""What the judge runs in its own Python: DuckDB and its Iceberg extension, which share no code with Spark or PyIceberg.

Takes `{"tables": {name: [metadata location, columns]}, "store": {…}}` on its standard input and answers with
`{name: rows}`, every value as text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb


def main() -> None:
    asked = json.load(sys.stdin)
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        for name in ("avro", "httpfs", "iceberg"):
            connection.load_extension(extension(name))
        if asked["store"]:
            connection.execute(secret(asked["store"]))
        answer = {name: rows(connection, location, columns) for name, (location, columns) in asked["tables"].items()}
    json.dump(answer, sys.stdout)


def extension(name: str) -> str:
    """The file of an extension that pip installed."""
    spec = find_spec(f"duckdb_extension_{name}")
    if spec is None or spec.origin is None:
        raise SystemExit(f"duckdb_extension_{name} is not installed")
    return str(next(Path(spec.origin).parent.glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension")))


def secret(store: Mapping[str, str]) -> str:
    scheme, _, host = store["s3.endpoint"].partition("://")
    parts = {
        "KEY_ID": store["s3.access-key-id"],
        "SECRET": store["s3.secret-access-key"],
        "REGION": store["client.region"],
        "ENDPOINT": host,
        "URL_STYLE": "path",
        "USE_SSL": "true" if scheme == "https" else "false",
    }
    return f"CREATE SECRET (TYPE s3, {', '.join(f'{name} {quoted(value)}' for name, value in parts.items())})"


def rows(connection: duckdb.DuckDBPyConnection, location: str, columns: list[str]) -> list[list[Any]]:
    chosen = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    place = location.removeprefix("file:")
    return [
        [None if value is None else str(value) for value in row]
        for row in connection.execute(f"SELECT {chosen} FROM iceberg_scan({quoted(place)})").fetchall()
    ]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    main()
