"""What `relayout explain` shows."""

from __future__ import annotations

from collections.abc import Callable

from relayout.alternates.choice import Code, Explanation, LayoutChoice, RelationChoice
from relayout.report.explain_text import explain_text
from relayout.table.batches import BatchKey

ALTERNATE = "_mv_93ut6xajptik78dnebnasitosu2pyi5q"
BASE = LayoutChoice("base", "", "fresh", Code.MORE_BYTES, 2_412, 61_581_000_000, 71_697_000_000)
STALE = LayoutChoice("_mv_" + "z" * 32, "by_line", "stale", Code.STALE, None, None, None)
FRESH = LayoutChoice(ALTERNATE, "by_fips", "fresh", Code.CHOSEN, 1, 1_640, 4_195_944)
PARTLY = LayoutChoice(
    ALTERNATE, "by_fips", "partly", Code.CHOSEN, 3, 5_000, 12_587_912,
    (BatchKey((("year", 2020),)), BatchKey((("year", None),))),
)  # fmt: skip
FILTER = "geo_fips IS NOT NULL AND geo_fips = '01001'"


def relation(chosen: LayoutChoice, hybrid: bool = False) -> RelationChoice:
    return RelationChoice(
        "regional_income", 8262347194573410000, FILTER, chosen.layout, hybrid, 3.21, (BASE, chosen, STALE)
    )


def alone(table: str, code: Code) -> RelationChoice:
    only = LayoutChoice("base", "", "fresh", code, 12, 3_000_000, 53_331_648)
    return RelationChoice(table, None, "true", "base", False, 0.5, (only,))


def test_every_table_of_a_query_is_shown_with_its_layouts(golden: Callable[[str, str], None]) -> None:
    one = Explanation("q", False, (relation(FRESH), alone("lake.other.dim", Code.NO_ALTERNATES)))
    both = Explanation("q", False, (relation(PARTLY, hybrid=True), alone("small", Code.CHOSEN)))
    golden("explain.txt", "\n\n--\n\n".join(explain_text(each) for each in (one, both)))


def test_the_last_line_says_whether_the_query_is_routed() -> None:
    def verdict(writes: bool, *relations: RelationChoice, failures: tuple[str, ...] = ()) -> str:
        return explain_text(Explanation("q", writes, relations, failures)).splitlines()[-1]

    assert verdict(False, relation(FRESH)) == "Routed"
    assert verdict(False, relation(FRESH), alone("t", Code.MORE_BYTES)) == "Routed in part"
    assert verdict(False, alone("t", Code.NO_ALTERNATES)) == "Not routed: the base serves"
    assert verdict(False) == "Not routed: the query reads no Iceberg table"
    assert verdict(True, alone("t", Code.WRITE)) == "Not routed: statements that write read the base"
    assert verdict(False, failures=("boom",)) == "Not routed: the query reads no Iceberg table"
