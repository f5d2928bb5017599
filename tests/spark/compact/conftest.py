"""Tables that Spark itself evolved: unpartitioned, by region, by region and month, by month and bucket."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relayout.api import Lake

COLUMNS = "id BIGINT, region STRING, ts TIMESTAMP_NTZ, price DECIMAL(9, 2), tag STRING"


def rows(first: int, count: int) -> str:
    """Values over two years and three regions, with nulls among them."""
    return ", ".join(
        f"({number}, {'NULL' if number % 7 == 0 else repr(['eu', 'us', 'asia'][number % 3])}, "
        f"TIMESTAMP_NTZ '202{3 + number % 2}-0{1 + number % 9}-1{number % 10} 0{number % 10}:30:00', "
        f"{number}.25, 't{number % 2}')"
        for number in range(first, first + count)
    )


@pytest.fixture(scope="session")
def evolve() -> Callable[[Lake, str, int], None]:
    """`evolve(lake, name, format_version)`: a table with four specs, files in each, and deletes in two of them."""

    def made(lake: Lake, name: str, version: int) -> None:
        properties = f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read'"
        steps = [
            f"CREATE TABLE {name} ({COLUMNS}) USING iceberg TBLPROPERTIES ({properties})",
            f"INSERT INTO {name} VALUES {rows(0, 9)}",
            f"INSERT INTO {name} VALUES {rows(9, 9)}",
            f"ALTER TABLE {name} ADD PARTITION FIELD region",
            f"INSERT INTO {name} VALUES {rows(18, 12)}",
            f"INSERT INTO {name} VALUES {rows(30, 12)}",
            f"ALTER TABLE {name} ADD PARTITION FIELD months(ts)",
            f"INSERT INTO {name} VALUES {rows(42, 12)}",
            f"ALTER TABLE {name} DROP PARTITION FIELD region",
            f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id)",
            f"INSERT INTO {name} VALUES {rows(54, 12)}",
            f"DELETE FROM {name} WHERE id IN (3, 20, 33)",
        ]
        for step in steps:
            lake.sql(step)

    return made
