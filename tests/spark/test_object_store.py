"""Sources and warehouses on S3, played by moto: `make crosscheck` walks the whole journey on more stores."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscheck.services.moto import moto
from crosscheck.services.store import BUCKET, Store
from relayout.api import Lake
from relayout.read.objects import ObjectStore
from relayout.spark.jars import AWS, ensure_jars
from relayout.spark.jvm.gateway import fetch_with_spark

MakeLake = Callable[..., Lake]

pytestmark = pytest.mark.spark

TABLES: Mapping[str, Mapping[str, Any]] = {
    "sales": {"source": f"s3://{BUCKET}/in/{{year}} é+%25/*.json", "partitions": {"keys": ["year"]}},
    "prices": {
        "source": f"s3://{BUCKET}/in/year=*/prices.csv",
        "schema": {"id": "int", "price": "decimal(9,2)", "twice": "decimal(10,2)"},
        "columns": {"twice": "cast(price * 2 as decimal(10,2))"},
        "partitions": {"keys": ["year"]},
    },
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with moto(tmp_path_factory.mktemp("moto")) as started:
        yield started


@pytest.fixture
def sources(store: Store) -> Callable[[str, str], None]:
    """`sources("a/b.json", text)` puts an object below `in/`."""
    client = store.client()

    def put(key: str, text: str) -> None:
        client.put_object(Bucket=BUCKET, Key=f"in/{key}", Body=text.encode())

    for year in (2021, 2022):
        put(f"{year} é+%25/a b.json", _lines({"id": 1}, {"id": 2}))
        put(f"year={year}/prices.csv", "id,price\n1,2.50\n2,\n")
    return put


def _lines(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def aws_jar(make_lake: MakeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lakes of these tests take jars from the machine's folder, and this one may not be there yet."""
    del make_lake
    with monkeypatch.context() as patch:
        patch.setenv("RELAYOUT_CACHE", str(Path(os.environ["RELAYOUT_JARS"]).parent))
        patch.delenv("RELAYOUT_JARS")
        ensure_jars([AWS], fetch_with_spark)


def rows_in(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in lake.table(table).scan().to_arrow().to_pylist()), key=repr)


def texts(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in rows]


def test_sources_on_s3_are_loaded_into_a_local_warehouse(
    make_lake: MakeLake, sources: Callable[[str, str], None], store: Store, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "2021.csv").write_text("id\n7\n")
    both = {
        "source": [f"s3://{BUCKET}/in/year=*/prices.csv", str(tmp_path / "here" / "{year}.csv")],
        "batch_partition_columns": [],
    }
    tables = {**TABLES, "both": both}
    lake = make_lake(tmp_path, tables, catalog={"properties": store.properties}, defaults={"retries": 1})
    assert lake.apply().complete
    assert lake.table("both").scan().to_arrow().num_rows == 5
    assert rows_in(lake, "sales") == [(1, 2021), (1, 2022), (2, 2021), (2, 2022)]
    assert texts(rows_in(lake, "prices"))[:2] == [("1", "2.50", "5.00", "2021"), ("1", "2.50", "5.00", "2022")]
    assert not lake.plan().has_work

    # One object gets other rows; others are torn or wrong, are named, and what was loaded from them stays.
    sources("2022 é+%25/a b.json", _lines({"id": 3}))
    sources("2021 é+%25/a b.json", '{"id": 4}\n{"id')
    sources("year=2021/prices.csv", "id,price\nx,1\n")
    receipt = lake.apply()
    told = " ".join(batch.note for table in receipt.tables for batch in table.batches)
    told += " ".join(path for table in lake.plan().tables for path, _ in table.bad_files)
    assert not receipt.complete
    assert f"s3://{BUCKET}/in/2021 é+%25/a b.json" in told, told
    assert f"s3://{BUCKET}/in/year=2021/prices.csv" in told, told
    assert "fetched" not in told, told
    assert rows_in(lake, "sales") == [(1, 2021), (2, 2021), (3, 2022)]


def test_an_object_that_is_not_the_listed_one_is_told_apart(sources: Callable[[str, str], None], store: Store) -> None:
    objects = ObjectStore.from_properties(store.properties)
    sources("seen/a.json", "{}")
    sources("seen/b.json", "{}")
    listed = {file.path.rsplit("/", 1)[-1]: file for file in objects.list(f"s3://{BUCKET}/in/seen")}
    assert [objects.moved(file) for file in listed.values()] == ["", ""]
    sources("seen/a.json", '{"id": 1}')
    assert objects.moved(listed["a.json"]) == "changed since it was listed"
    older = replace(listed["b.json"], modified_ns=listed["b.json"].modified_ns - 2_000_000_000)
    assert objects.moved(older) == "changed since it was listed"
    assert objects.delete(f"s3://{BUCKET}/in/seen/b.json")
    assert objects.moved(listed["b.json"]) == "is gone since it was listed"


@pytest.mark.usefixtures("aws_jar")
def test_a_warehouse_on_s3_takes_the_same_rows_and_replaces_one_batch(
    make_lake: MakeLake, sources: Callable[[str, str], None], store: Store, tmp_path: Path
) -> None:
    catalog = {"uri": f"jdbc:sqlite:{tmp_path / 'catalog.db'}", "properties": store.properties}
    lake = make_lake(tmp_path, TABLES, warehouse=f"s3://{BUCKET}/house", catalog=catalog)
    assert lake.apply().complete
    assert rows_in(lake, "sales") == [(1, 2021), (1, 2022), (2, 2021), (2, 2022)]
    assert lake.table("sales").metadata_location.startswith(f"s3://{BUCKET}/house/")
    by_spark = lake.sql("SELECT year, sum(twice) FROM prices GROUP BY year ORDER BY year").collect()
    assert texts([tuple(row) for row in by_spark]) == [("2021", "5.00"), ("2022", "5.00")]
    sources("2022 é+%25/a b.json", _lines({"id": 3}))
    assert [str(batch.key) for table in lake.plan().tables for batch in table.batches] == ["{year=2022}"]
    assert lake.apply().complete
    assert rows_in(lake, "sales") == [(1, 2021), (2, 2021), (3, 2022)]
    assert not lake.plan().has_work
