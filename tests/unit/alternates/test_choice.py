"""What the rule in the JVM tells, as values and as a document."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from relayout.alternates.choice import MEANINGS, Code, Explanation
from relayout.table.batches import BatchKey


def told(chosen: str, *layouts: dict[str, Any], table: str = "lake.db.income") -> dict[str, Any]:
    return {
        "table": table,
        "snapshot_id": 7,
        "filter": "true",
        "chosen": chosen,
        "hybrid": False,
        "micros": 1500,
        "layouts": list(layouts),
    }


def layout(table: str, code: str, **more: Any) -> dict[str, Any]:
    return {
        "layout": table,
        "name": "",
        "freshness": "fresh",
        "batches": [],
        "only": False,
        "code": code,
        "files": 1,
        "bytes": 10,
        "cost": 10 + 4 * 1024**2,
    } | more


def explained(*relations: dict[str, Any], command: bool = False) -> Explanation:
    return Explanation.from_told("select 1", {"command": command, "relations": list(relations)}, "lake.db.")


BASE_SERVES = told("base", layout("base", "CHOSEN"), layout("_mv_a", "STALE"))
ALTERNATE_SERVES = told("_mv_a", layout("base", "MORE_BYTES"), layout("_mv_a", "CHOSEN"))
NO_ALTERNATES = told("base", layout("base", "NO_ALTERNATES"), table="lake.other.dim")


def test_routed_means_all_tables_that_have_alternates_and_at_least_one() -> None:
    assert explained(ALTERNATE_SERVES).routed
    assert explained(ALTERNATE_SERVES, NO_ALTERNATES).routed
    assert not explained(ALTERNATE_SERVES, BASE_SERVES).routed
    assert not explained(NO_ALTERNATES).routed
    assert not explained().routed
    assert not explained({"failed": "java.lang.Error"}).routed


def test_the_document_names_tables_codes_and_reasons() -> None:
    half = layout("_mv_a", "CHOSEN", freshness="partly", batches=[{"year": None}], name="by_geo")
    document = explained(told("_mv_a", half), NO_ALTERNATES, {"failed": "it broke"}).to_json()
    assert (document["schema"], document["kind"], document["failures"]) == (1, "explain", ["it broke"])
    assert [relation["table"] for relation in document["relations"]] == ["income", "lake.other.dim"]
    assert document["relations"][0]["choice_ms"] == 1.5
    assert document["relations"][0]["layouts"] == [
        {
            "layout": "_mv_a",
            "name": "by_geo",
            "freshness": "partly",
            "code": "CHOSEN",
            "reason": "serves the query",
            "files": 1,
            "bytes": 10,
            "cost": 4194314,
            "stale_batches": [{"year": None}],
        }
    ]


def test_batches_that_alone_are_fresh_are_told_as_such() -> None:
    some = layout("_mv_a", "CHOSEN", batches=[{"year": 2020}], only=True)
    [found] = explained(told("_mv_a", some)).relations[0].layouts
    assert found.batches == (BatchKey((("year", 2020),)),)
    assert found.to_json()["fresh_batches"] == [{"year": 2020}]


def test_every_code_has_a_meaning_and_is_one_that_the_rule_gives() -> None:
    source = (files("relayout.spark.route") / "Routing.java").read_text("utf-8")
    given = set(re.findall(r'"([A-Z][A-Z_]{4,})"', source))
    assert set(MEANINGS) == set(Code)
    assert {code.value for code in Code} <= given
