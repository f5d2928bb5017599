"""Whatever is asked, and however fresh the alternates are, routing changes no row.

Queries are made from a seed. Several run in one statement, because starting a query costs more than its few rows do;
RELAYOUT_QUERIES asks for more of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.routing.conftest import Workshop
from tests.spark.routing.test_freshness import load_again

pytestmark = pytest.mark.spark

QUERIES = int(os.environ.get("RELAYOUT_QUERIES", "96"))
AT_ONCE = 8

ROWS = """
select cast(id as int) id, if(id % 11 = 0, null, concat('g', id % 7)) geo,
       cast(if(id % 5 = 4, null, 2020 + id % 5) as int) year, cast(id % 9 as int) value,
       if(id % 13 = 0, null, date_add(date '2020-02-25', cast(id % 10 as int))) day,
       if(id % 17 = 0, null, timestamp '2020-01-01 00:00:00' + make_interval(0, 0, 0, 0, cast(id % 30 as int))) at,
       cast(if(id % 6 = 5, null, id % 6 / 4.0) as decimal(10, 2)) price,
       if(id % 19 = 0, double('NaN'), if(id % 7 = 0, null, double(id % 7) - 3)) ratio,
       if(id % 3 = 0, null, id % 3 = 1) flag, struct(cast(id % 4 as int) as a, concat('x', id % 3) as b) inner_part
from range(120)
"""


@pytest.fixture(scope="module")
def shop(workshop_in: Callable[[Path], Workshop], tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Bases in every state: each with an alternate by geo that is sorted and one by value."""
    made = workshop_in(tmp_path_factory.mktemp("generated"))
    for base in STATES:
        made.sql(f"create table {base} using iceberg partitioned by (year) as {ROWS}")
        made.alternate(base, "by_geo", "PARTITIONED BY (bucket(3, geo))")
        made.alternate(base, "by_day", "PARTITIONED BY (days(day))")
    first = made.snapshot("rolled_back")
    for base, statement in (
        ("stale", "delete from stale where value = 3"),
        ("rolled_back", "update rolled_back set value = 100 where geo = 'g1'"),
        ("caught_up", "delete from caught_up where geo = 'g2' and year = 2020"),
        ("evolved", "alter table evolved add column note string"),
        ("evolved", "alter table evolved drop column value"),
        ("evolved", "alter table evolved add column value int"),
    ):
        made.sql(statement)
        assert base in STATES
    made.sql(f"call lake.system.rollback_to_snapshot('db.rolled_back', {first})")
    for table in made.lake.table("caught_up").properties["relayout.alternates"].split(","):
        made.fill("caught_up", table)
    made.sql("call lake.system.rewrite_data_files(table => 'db.caught_up', options => map('rewrite-all', 'true'))")
    # Two batches of `partly` are loaded anew, one of them the batch without a year.
    load_again(made, "partly", 2021, None, rows=ROWS.replace("id % 9 as int) value", "id % 8 as int) value"))
    return made


STATES = ("fresh", "partly", "stale", "rolled_back", "caught_up", "evolved")


class Asker:
    """Makes queries from a seed."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def query(self) -> str:
        shape = self._pick(
            self._plain, self._plain, self._grouped, self._joined, self._outer, self._within, self._exists,
            self._scalar, self._common, self._united, self._windowed, self._ordered, self._distinct, self._minus,
        )  # fmt: skip
        return str(shape())

    def _pick(self, *choices: Any) -> Any:
        return self._dice.choice(choices)

    def _base(self) -> str:
        return str(self._pick(*STATES))

    def condition(self, depth: int = 2, of: str = "") -> str:
        if depth and self._dice.random() < 0.6:
            one, other = self.condition(depth - 1, of), self.condition(depth - 1, of)
            return str(self._pick(f"({one} and {other})", f"({one} and {other})", f"({one} or {other})", f"not {one}"))
        number = self._dice.randrange(10)
        one = self._pick(
            f"geo = 'g{number}'", f"geo in ('g{number}', 'g1')", f"geo like 'g{number}%'", "geo is null",
            f"geo > 'g{number}'", "geo is not null", f"year = {2018 + number}", "year is null",
            f"year <=> {self._pick('null', '2021')}", f"year between 2020 and {2018 + number}", f"year <> {2020}",
            f"year not in (2020, {2018 + number})", f"value = {number}", f"value < {number}", f"id = {number}",
            f"id % {number + 1} = 0", f"day = date '2020-02-2{number}'", f"day >= date '2020-03-0{number % 5 + 1}'",
            f"day between date '2020-02-26' and date '2020-03-0{number % 5 + 1}'", "day is null",
            f"at < timestamp '2020-01-{number + 10} 00:00:00'", f"price > {number / 8}", "price is null",
            f"ratio < {number - 4}", "ratio = double('NaN')", "flag = true", "flag is null", f"inner_part.a = {number}",
            "inner_part.b = 'x1'", f"geo || '' = 'g{number}'",
        )  # fmt: skip
        return f"({of}{one})"

    def _plain(self) -> str:
        columns = self._pick("*", "id", "geo, year, id", "id, day, at, price, ratio, flag", "inner_part.a, id", "1 one")
        return f"select {columns} from {self._base()} where {self.condition()}"

    def _grouped(self) -> str:
        by = self._pick("geo", "year", "day", "geo, year", "inner_part.b")
        return (
            f"select {by}, count(*), count(value), sum(id), min(day), max(price) from {self._base()} "
            f"where {self.condition()} group by {by} having count(*) > {self._dice.randrange(3)}"
        )

    def _joined(self) -> str:
        one = self._base()
        other = self._pick(one, one, self._base())
        on = self._pick("a.geo = b.geo", "a.day = b.day", "a.year <=> b.year and a.geo = b.geo", "a.id = b.id")
        kind = self._pick("join", "join", "left semi join", "left anti join")
        columns = "a.id, a.value" if "semi" in kind or "anti" in kind else "a.id one, b.id other, b.year"
        where = self.condition(1, "a.")
        return f"select {columns} from {one} a {kind} {other} b on {on} and {self.condition(0, 'b.')} where {where}"

    def _outer(self) -> str:
        kind = self._pick("left", "right", "full")
        return (
            f"select a.id one, b.id other, b.geo from {self._base()} a {kind} join (select * from {self._base()} "
            f"where {self.condition(1)}) b on a.id = b.id and {self.condition(0, 'a.')}"
        )

    def _within(self) -> str:
        negated = self._pick("in", "not in")
        return (
            f"select id, geo from {self._base()} where {self.condition(1)} and year {negated} "
            f"(select year from {self._base()} where {self.condition(1)} and year is not null)"
        )

    def _exists(self) -> str:
        word = self._pick("exists", "not exists")
        return (
            f"select id from {self._base()} o where {self.condition(1, 'o.')} and {word} (select 1 from "
            f"{self._base()} i where i.value = o.value and {self.condition(1, 'i.')})"
        )

    def _scalar(self) -> str:
        inner = f"select max({self._pick('geo', 'geo')}) from {self._base()} where {self.condition(1)}"
        return f"select id, year from {self._base()} where geo = ({inner}) or {self.condition(0)}"

    def _common(self) -> str:
        return (
            f"with c as (select * from {self._base()} where {self.condition(1)}) select x.id one, y.id other from c x "
            f"join c y on x.geo = y.geo and x.year <=> y.year where {self.condition(0, 'x.')}"
        )

    def _united(self) -> str:
        word = self._pick("union all", "union")
        return (
            f"select id, geo from {self._base()} where {self.condition(1)} {word} "
            f"select id, geo from {self._base()} where {self.condition(1)}"
        )

    def _windowed(self) -> str:
        return (
            "select * from (select id, geo, row_number() over (partition by geo order by id) place, "
            f"sum(id) over (partition by year) total from {self._base()} where {self.condition(1)}) where place < 5"
        )

    def _ordered(self) -> str:
        offset = self._dice.randrange(3)
        return f"select id, geo from {self._base()} where {self.condition()} order by id desc limit 7 offset {offset}"

    def _distinct(self) -> str:
        return f"select distinct geo, year from {self._base()} where {self.condition()}"

    def _minus(self) -> str:
        word = self._pick("except", "intersect", "except all")
        return (
            f"select geo, year from {self._base()} where {self.condition(1)} {word} "
            f"select geo, year from {self._base()} where {self.condition(1)}"
        )


def statements() -> Iterator[tuple[list[str], str]]:
    for first in range(0, QUERIES, AT_ONCE):
        queries = [Asker(seed).query() for seed in range(first, first + AT_ONCE)]
        yield (
            queries,
            " union all ".join(
                f"select {number} query, to_json(struct(q.*)) row from ({query}) q"
                for number, query in enumerate(queries)
            ),
        )


def test_generated_queries_give_the_same_rows(shop: Workshop) -> None:
    routed = 0
    for queries, statement in statements():
        explained = shop.explained(statement)
        assert not explained.failures, queries
        routed += sum(relation.routed for relation in explained.relations)
        given = sorted(map(tuple, shop.lake.sql(statement).collect()), key=repr)
        expected = sorted(map(tuple, shop.lake.sql(statement, route=False).collect()), key=repr)
        wrong = {queries[row[0]] for row in set(given) ^ set(expected)}
        assert given == expected, "\n".join(wrong)
    assert routed > QUERIES / 4, "hardly anything was routed, so hardly anything was tested"


def test_the_states_are_what_they_are_called(shop: Workshop) -> None:
    found = {base: shop.layouts(f"select id from {base} where geo = 'g1'")["by_geo"].freshness for base in STATES}
    assert found == {
        "fresh": "fresh",
        "partly": "partly",
        "stale": "stale",
        "rolled_back": "fresh",
        "caught_up": "fresh",
        "evolved": "fresh",
    }
