"""Whatever is wrong with an alternate or with the time there is, the base answers, and answers rightly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.routing.conftest import Workshop

pytestmark = pytest.mark.spark

ASKED = "select geo, year, value from {} where geo = 'g1'"


@pytest.fixture(scope="module")
def shop(workshop_in: Callable[[Path], Workshop], tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return workshop_in(tmp_path_factory.mktemp("trouble"))


def filled(shop: Workshop, base: str) -> str:
    shop.sql(
        f"create table {base} using iceberg partitioned by (year) as "
        "select concat('g', id % 5) geo, cast(2020 + id % 4 as int) year, cast(id as int) value from range(40)"
    )
    return shop.alternate(base, "by_geo", "PARTITIONED BY (geo)")


def test_without_time_the_base_serves(shop: Workshop) -> None:
    filled(shop, "hurried")
    spark = shop.lake.spark
    spark.conf.set("spark.relayout.routing.budget-ms", "0")
    try:
        frame = shop.lake.sql(ASKED.format("hurried"))
        assert shop.scanned(frame) == {"hurried"}
        assert frame.count() == 8
    finally:
        spark.conf.set("spark.relayout.routing.budget-ms", "150")
    assert shop.chosen(ASKED.format("hurried")) == "by_geo"


def test_a_budget_that_is_no_number_is_the_usual_one(shop: Workshop) -> None:
    filled(shop, "confused")
    spark = shop.lake.spark
    spark.conf.set("spark.relayout.routing.budget-ms", "soon")
    try:
        assert len(shop.both_ways(ASKED.format("confused"))) == 8
    finally:
        spark.conf.set("spark.relayout.routing.budget-ms", "150")


def test_an_alternate_whose_metadata_is_gone_is_left_out(shop: Workshop) -> None:
    table = filled(shop, "damaged")
    folder = Path(shop.lake.table(table).location().removeprefix("file:"))
    for manifest in folder.glob("metadata/*.avro"):
        manifest.unlink()
    assert [layout.code for layout in shop.layouts(ASKED.format("damaged")).values()] == ["CHOSEN", "UNREADABLE"]
    assert len(shop.both_ways(ASKED.format("damaged"))) == 8


def test_an_account_that_nobody_can_read_is_not_trusted(shop: Workshop) -> None:
    table = filled(shop, "garbled")
    shop.fill("garbled", table, stale="[{")
    assert [layout.code for layout in shop.layouts(ASKED.format("garbled")).values()] == ["CHOSEN", "UNREADABLE"]
    assert len(shop.both_ways(ASKED.format("garbled"))) == 8


def test_names_with_dots_spaces_and_quotes_are_routed(shop: Workshop) -> None:
    shop.sql(
        "create table `odd name.x` using iceberg partitioned by (`the year`) as select concat('g', id % 5) `a.b c`, "
        "cast(2020 + id % 4 as int) `the year`, id `it's` from range(40)"
    )
    shop.alternate("`odd name.x`", "by_a", "PARTITIONED BY (`a.b c`)", stale=[{"the year": 2021}])
    asked = "select `a.b c`, `the year`, `it's` from `odd name.x` where `a.b c` = 'g1'"
    layouts = shop.layouts(asked)
    assert (layouts["by_a"].code, layouts["by_a"].freshness) == ("CHOSEN", "partly")
    assert len(shop.both_ways(asked)) == 8


def test_attaching_twice_routes_once(shop: Workshop) -> None:
    import relayout

    filled(shop, "twice")
    relayout.attach(shop.lake.spark)
    relayout.attach(shop.lake.spark.newSession())
    assert len(shop.explained(ASKED.format("twice")).relations) == 1
