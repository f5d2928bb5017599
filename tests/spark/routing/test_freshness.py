"""An alternate serves only what is proven to be the base's rows at the snapshot that the query reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.functions import expr

from relayout.table.alternates import ALL_STALE
from tests.spark.routing.conftest import Workshop

pytestmark = pytest.mark.spark

ROWS = (
    "select concat('g', id % 5) geo, cast(if(id % 4 = 3, null, 2020 + id % 4) as int) year, cast(id as int) value "
    "from range(40)"
)


@pytest.fixture(scope="module")
def shop(workshop_in: Callable[[Path], Workshop], tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return workshop_in(tmp_path_factory.mktemp("freshness"))


@pytest.fixture
def base(shop: Workshop, request: pytest.FixtureRequest) -> str:
    """A table by year, one of them null, with the test's own name."""
    name = str(request.node.name).split("[")[0].removeprefix("test_")
    shop.sql(f"create table {name} using iceberg partitioned by (year) as {ROWS}")
    return name


def query(base: str) -> str:
    return f"select geo, year, value from {base} where geo = 'g1'"


LOADED_AGAIN = ROWS.replace("cast(id as int)", "cast(id + 1000 as int)")


def load_again(shop: Workshop, base: str, *years: int | None, rows: str = LOADED_AGAIN) -> None:
    """What an ingestion does: replace the batches, and stamp them."""
    stamps = [
        {"batch": {"year": year}, "fingerprint": "f", "schema-hash": "s", "rows": 1, "files": 1, "bytes": 1}
        for year in years
    ]
    condition = " or ".join(f"year <=> {'null' if year is None else year}" for year in years)
    shop.sql("select 1")
    frame = shop.lake.spark.sql(f"select * from ({rows}) where {condition}")
    writer = frame.writeTo(f"lake.db.{base}").option("snapshot-property.relayout.layout", "base")
    writer.option("snapshot-property.relayout.batches", json.dumps(stamps)).overwrite(expr(condition))


def state(shop: Workshop, base: str) -> tuple[str, str]:
    """Who serves, and how fresh the alternate is; the rows must be right in any case."""
    assert shop.both_ways(query(base))
    assert shop.both_ways(f"select count(*), sum(value) from {base} where geo in ('g1', 'g2') and year is null")
    layout = shop.layouts(query(base))["by_geo"]
    return layout.code.value, layout.freshness


def test_compaction_of_the_base_changes_nothing(shop: Workshop, base: str) -> None:
    shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
    shop.sql(f"insert into {base} values ('g1', 2020, 1)")
    assert state(shop, base) == ("STALE", "stale")
    shop.fill(base, shop.explained(query(base)).relations[0].layouts[1].layout)
    shop.sql(f"call lake.system.rewrite_data_files(table => 'db.{base}', options => map('rewrite-all', 'true'))")
    assert state(shop, base) == ("CHOSEN", "fresh")


def test_stale_batches_come_from_the_base(shop: Workshop, base: str) -> None:
    table = shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
    load_again(shop, base, 2020, None)
    assert state(shop, base) == ("CHOSEN", "partly")
    layout = shop.layouts(query(base))["by_geo"]
    assert {str(key) for key in layout.batches} == {"{year=2020}", "{year=null}"}
    assert shop.scanned(shop.lake.sql(query(base))) == {base, table}
    shop.fill(base, table)
    assert state(shop, base) == ("CHOSEN", "fresh")


def test_an_alternate_under_construction_serves_what_it_has(shop: Workshop, base: str) -> None:
    shop.alternate(base, "by_geo", "PARTITIONED BY (geo)", "year is null or year = 2021", fresh=[{"year": 2021}])
    assert state(shop, base)[1] == "partly"
    assert shop.layouts(f"select * from {base} where geo = 'g1' and year = 2021")["by_geo"].only
    load_again(shop, base, 2021)
    assert state(shop, base) == ("STALE", "stale")


def test_a_marked_alternate_serves_nothing(shop: Workshop, base: str) -> None:
    table = shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
    shop.fill(base, table, "false", stale=ALL_STALE)
    assert state(shop, base) == ("STALE", "stale")


def test_after_a_rollback_the_older_snapshot_serves(shop: Workshop, base: str) -> None:
    table = shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
    first = shop.snapshot(base)
    shop.sql(f"delete from {base} where geo = 'g1' and value < 20")
    second = shop.snapshot(base)
    assert state(shop, base) == ("STALE", "stale")
    shop.fill(base, table)
    assert state(shop, base) == ("CHOSEN", "fresh")
    shop.sql(f"call lake.system.rollback_to_snapshot('db.{base}', {first})")
    assert state(shop, base) == ("CHOSEN", "fresh")
    assert len(shop.both_ways(query(base))) == 8
    shop.sql(f"update {base} set value = 5 where year = 2021")
    assert state(shop, base) == ("STALE", "stale")
    known = f"select * from {base} version as of {{}} where geo = 'g1'"
    for snapshot, rows in ((first, 8), (second, 4)):
        assert shop.layouts(known.format(snapshot))["by_geo"].code == "CHOSEN"
        assert len(shop.both_ways(known.format(snapshot))) == rows
    unknown = shop.snapshot(base)
    shop.sql(f"insert into {base} values ('g1', 2020, 1)")
    assert shop.layouts(known.format(unknown))["by_geo"].code == "STALE"


def test_branches_are_read_from_the_base(shop: Workshop, base: str) -> None:
    shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
    shop.sql(f"alter table {base} create branch audit")
    shop.sql(f"insert into db.{base}.branch_audit values ('g1', 2020, 77)")
    on_branch = f"select * from db.{base}.branch_audit where geo = 'g1'"
    assert [layout.code for layout in shop.explained(on_branch).relations[0].layouts] == ["BRANCH"]
    assert len(shop.both_ways(on_branch)) == 9
    as_version = f"select * from {base} version as of 'audit' where geo = 'g1'"
    assert not shop.explained(as_version).routed
    assert len(shop.both_ways(as_version)) == 9
    assert state(shop, base) == ("CHOSEN", "fresh")


def test_strange_commits_to_the_alternate_are_not_trusted(shop: Workshop, base: str) -> None:
    table = shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
    shop.sql(f"insert into {table} values ('g1', 2020, 99)")
    assert state(shop, base) == ("CHOSEN", "fresh")
    assert len(shop.both_ways(query(base))) == 8
    shop.sql(f"call lake.system.rewrite_data_files(table => 'db.{table}', options => map('rewrite-all', 'true'))")
    assert len(shop.both_ways(query(base))) == 8


def test_a_missing_or_foreign_alternate_leaves_the_base_to_serve(shop: Workshop, base: str) -> None:
    table = shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
    assert state(shop, base) == ("CHOSEN", "fresh")
    shop.tell(table, {"relayout.alternate-of": "somebody else"})
    assert [layout.code for layout in shop.layouts(query(base)).values()] == ["CHOSEN", "NOT_ITS_ALTERNATE"]
    shop.sql(f"drop table {table}")
    assert [layout.code for layout in shop.layouts(query(base)).values()] == ["CHOSEN", "MISSING"]
    assert shop.both_ways(query(base))


EVOLUTIONS: dict[str, tuple[list[str], str, str]] = {
    "an unused column": (["add column note string"], "geo, value", "CHOSEN"),
    "a used column": (["add column note string"], "geo, note", "NO_COLUMN"),
    "a widened column": (["alter column value type bigint"], "geo, value", "OTHER_TYPE"),
    "a widened column, unused": (["alter column value type bigint"], "geo, year", "CHOSEN"),
    "a renamed column": (["rename column value to amount"], "geo, amount", "NO_COLUMN"),
    "names that changed places": (
        ["rename column value to other", "rename column twice to value", "rename column other to twice"],
        "geo, value",
        "NO_COLUMN",
    ),
    "a name that came back": (["drop column value", "add column value int"], "geo, value", "NO_COLUMN"),
    "a new partition spec": (["add partition field bucket(4, value)"], "geo, value", "CHOSEN"),
}


def test_columns_are_known_by_their_ids(shop: Workshop) -> None:
    for number, (what, (changes, columns, code)) in enumerate(EVOLUTIONS.items()):
        base = f"evolved_{number}"
        shop.sql(f"create table {base} using iceberg partitioned by (year) as select *, value * 2 twice from ({ROWS})")
        shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
        for change in changes:
            shop.sql(f"alter table {base} {change}")
        asked = f"select {columns} from {base} where geo = 'g1'"
        assert shop.layouts(asked)["by_geo"].code == code, what
        assert shop.both_ways(asked)


def test_a_dataframe_made_before_a_commit_reads_what_spark_reads(shop: Workshop, base: str) -> None:
    """Spark looks tables up again before it runs a query; the alternate must be judged for what is read then."""
    shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")
    frame = shop.lake.sql(query(base))
    assert frame.count() == 8
    shop.sql(f"delete from {base} where value < 10")
    assert frame.count() == shop.lake.sql(query(base), route=False).count()


def test_more_than_sixty_four_batches_are_not_split(shop: Workshop, base: str) -> None:
    stale: list[dict[str, Any]] = [{"year": 1900 + number} for number in range(65)]
    shop.alternate(base, "by_geo", "PARTITIONED BY (geo)", stale=stale)
    assert state(shop, base) == ("TOO_MANY_BATCHES", "partly")
