"""A query on a base is answered by the layout that reads least, in whatever form it is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812

from relayout.errors import NotRouted, UsageError
from tests.spark.routing.conftest import Workshop

pytestmark = pytest.mark.spark

BY_GEO = "select sum(value) from income where geo = 'g001'"


@pytest.fixture(scope="module")
def shop(workshop_in: Callable[[Path], Workshop], tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = workshop_in(tmp_path_factory.mktemp("choice"))
    made.sql(
        "create table income using iceberg partitioned by (year) as select concat('g', lpad(cast(id % 20 as string), "
        "3, '0')) geo, cast(2015 + id % 6 as int) year, cast(id % 7 as int) line, cast(id as double) value "
        "from range(2400)"
    )
    made.alternate("income", "by_geo", "PARTITIONED BY (geo)")
    made.alternate("income", "by_line", "PARTITIONED BY (line)")
    made.sql("create table other using iceberg as select cast(id as int) line, concat('n', id) tag from range(4)")
    return made


def test_the_layout_with_the_least_bytes_and_files_serves(shop: Workshop) -> None:
    layouts = shop.layouts(BY_GEO)
    assert {name: (layout.code, layout.files) for name, layout in layouts.items()} == {
        "base": ("MORE_BYTES", 6),
        "by_geo": ("CHOSEN", 1),
        "by_line": ("MORE_BYTES", 7),
    }
    assert all(layout.cost == layout.size_bytes + 4 * 1024**2 * layout.files for layout in layouts.values())
    assert shop.chosen("select * from income where line = 3") == "by_line"
    assert shop.chosen("select * from income where year = 2016") == "base"
    assert shop.both_ways(BY_GEO)[0][0] == sum(range(1, 2400, 20))


def test_leading_keys_decide_nothing(shop: Workshop) -> None:
    """Both alternates could prune; the one that prunes more serves."""
    assert shop.chosen("select * from income where geo = 'g001' and line in (1, 2, 3)") == "by_geo"
    assert shop.chosen("select * from income where geo between 'g001' and 'g009' and line = 1") == "by_line"


ROUTED = {
    "cte": "with c as (select * from income where geo = 'g003') select a.line, count(*) from c a join c b "
    "on a.line = b.line and a.year = b.year group by a.line",
    "join": "select tag, sum(value) from income i join other o on i.line = o.line where geo = 'g002' group by tag",
    "self-join": "select count(*) from income a join income b on a.geo = b.geo and a.line = b.line "
    "where a.geo = 'g007'",
    "outer join": "select o.line, count(value) from other o left join income i on i.line = o.line and i.geo = 'g002' "
    "group by o.line",
    "scalar subquery": "select sum(value) from income where geo = (select max(geo) from income where line = 2)",
    "in subquery": "select sum(value) from income where geo = 'g003' and line in "
    "(select line from income where geo = 'g004' and value > 2000)",
    "exists": "select count(value) from income o where geo = 'g003' and exists "
    "(select 1 from income i where i.geo = 'g005' and i.line = o.line and i.value > 2300)",
    "lateral": "select count(*) from other d, lateral (select value from income t where t.geo = 'g002' "
    "and t.line = 1) x",
    "union": "select max(value) from income where geo = 'g001' union all select max(value) from income where line = 2",
    "window": "select * from (select geo, value, row_number() over (partition by geo order by value) r from income) "
    "where geo = 'g001' and r < 4",
    "limit": "select value from income where geo = 'g001' order by value desc limit 3",
    "folded": "select sum(value) from income where geo = lower('G001')",
    "identifier": "select sum(value) from identifier('in' || 'come') where geo = 'g001'",
    "pipe": "from income |> where geo = 'g001' |> aggregate sum(value)",
    "full name": "select sum(value) from lake.db.income where geo = 'g001'",
    "upper case": "select SUM(VALUE) from income where GEO = 'g001'",
    "distinct": "select distinct year from income where geo in ('g001', 'g011')",
    "grouping sets": "select year, line, sum(value) from income where geo = 'g001' group by cube(year, line)",
    "pivot": "select * from (select year, line, value from income where geo = 'g001') "
    "pivot (sum(value) for line in (1, 2))",
    "intersect": "select line from income where geo = 'g001' intersect select line from income where geo = 'g002'",
}


@pytest.mark.parametrize("query", ROUTED.values(), ids=ROUTED)
def test_every_form_of_query_is_routed_and_right(shop: Workshop, query: str) -> None:
    assert any(relation.routed for relation in shop.explained(query).relations)
    assert shop.both_ways(query)


STAYING = {
    "METADATA_COLUMN": "select count(distinct _file) from income where geo = 'g001'",
    "FILE_NAME": "select distinct input_file_name() from income where geo = 'g001'",
    "SAMPLE": "select count(*) from income tablesample (10 percent) repeatable (1) where geo = 'g001'",
    "METADATA_TABLE": "select count(*) from db.income.files",
    "WRITE": "insert into other select line, geo from income where geo = 'g001'",
    "NO_ALTERNATES": "select * from other where line = 1",
}


@pytest.mark.parametrize(("code", "query"), STAYING.items(), ids=STAYING)
def test_what_only_the_base_has_stays_on_the_base(shop: Workshop, code: str, query: str) -> None:
    layouts = [layout for relation in shop.explained(query).relations for layout in relation.layouts]
    assert [layout.code for layout in layouts] == [code]


def test_explaining_a_statement_that_writes_runs_nothing(shop: Workshop) -> None:
    before = shop.snapshot("income")
    for statement in ("delete from income", "insert into income select * from income", "drop table income"):
        assert shop.explained(statement).writes
    assert shop.snapshot("income") == before


def test_views_are_seen_through(shop: Workshop) -> None:
    shop.sql("create or replace temp view recent as select * from income where year > 2016")
    assert shop.chosen("select max(value) from recent where geo = 'g002'") == "by_geo"
    assert shop.both_ways("select max(value) from recent where geo = 'g002'")


def test_dataframes_and_parameters_are_routed(shop: Workshop) -> None:
    spark = shop.lake.spark
    for frame in (
        spark.table("lake.db.income").where(F.col("geo") == "g001"),
        spark.read.format("iceberg").load("lake.db.income").where("geo = 'g001'"),
        spark.sql("select * from lake.db.income where geo = :g", args={"g": "g001"}),
    ):
        assert shop.lake.explain(frame).routed
        assert frame.count() == 120


def test_options_of_the_reader_stay_on_the_base(shop: Workshop) -> None:
    spark = shop.lake.spark
    frame = spark.read.option("streaming-skip-delete-snapshots", "true").table("lake.db.income")
    assert [layout.code for layout in shop.lake.explain(frame).relations[0].layouts] == ["READ_OPTIONS"]


def test_unfiltered_tables_below_joins_and_limits_stay(shop: Workshop) -> None:
    """A join may prune while it runs, and the first rows are found anywhere."""
    join = shop.explained("select tag, count(*) from income i join other o on i.line = o.line group by tag")
    assert not any(relation.routed for relation in join.relations)
    assert shop.chosen("select * from income limit 3") == "base"
    assert shop.chosen("select count(*) from income") == "base"


def test_routing_can_be_forbidden_forced_and_required(shop: Workshop) -> None:
    sql = shop.lake.sql
    served = {name: layout.layout for name, layout in shop.layouts(BY_GEO).items()} | {"base": "income"}
    forced = sql(BY_GEO, layout="by_line")
    assert shop.scanned(forced) == {served["by_line"]}
    assert forced.collect() == shop.sql(BY_GEO)
    assert shop.scanned(sql(BY_GEO, layout=served["by_line"])) == {served["by_line"]}
    assert shop.scanned(sql(BY_GEO, layout="base")) == {"income"}
    assert shop.scanned(sql(BY_GEO, route=False)) == {"income"}
    assert shop.scanned(sql(BY_GEO, require_route=True)) == {served["by_geo"]}
    with pytest.raises(NotRouted, match="by_line MORE_BYTES"):
        shop.lake.sql("select * from income where year = 2016", require_route=True)
    with pytest.raises(NotRouted, match="no table of the query has alternates"):
        shop.lake.sql("select 1", require_route=True)
    with pytest.raises(NotRouted, match="nonsense"):
        shop.lake.sql(BY_GEO, layout="nonsense")
    with pytest.raises(UsageError):
        shop.lake.sql(BY_GEO, route=False, require_route=True)
    with pytest.raises(UsageError, match="writes"):
        shop.lake.sql("delete from income", require_route=True)
    assert shop.scanned(sql(BY_GEO)) == {served["by_geo"]}


def test_the_session_setting_fails_queries_that_are_not_routed(shop: Workshop) -> None:
    """So that a server can be told, too."""
    spark = shop.lake.spark
    spark.conf.set("spark.relayout.routing", "require")
    try:
        assert shop.sql(BY_GEO)
        with pytest.raises(Exception, match="RELAYOUT_NOT_ROUTED"):
            shop.sql("select * from income where year = 2016")
    finally:
        spark.conf.unset("spark.relayout.routing")


def test_dml_leaves_the_same_rows_with_and_without_routing(shop: Workshop) -> None:
    statements = (
        "delete from {t} where geo = 'g001' and line = 2",
        "update {t} set value = value + 1 where geo = 'g002'",
        "insert into {t} select geo, 2030, line, value from income where geo = 'g003'",
        """merge into {t} t using (select * from income where geo = 'g004') s on t.value = s.value
        when matched then update set line = 9 when not matched then insert *""",
        "delete from {t} where value in (select value from income where geo = 'g005')",
    )
    for table, route in (("with_routing", True), ("without", False)):
        shop.sql(f"create table {table} using iceberg as select * from income")
        for statement in statements:
            shop.lake.sql(statement.format(t=table), route=route)
    difference = "select * from with_routing except all select * from without"
    assert shop.sql(difference) == []
    assert shop.sql("select count(*) from with_routing") == shop.sql("select count(*) from without")
