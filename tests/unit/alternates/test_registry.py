"""Alternates that are there against those that are declared."""

from __future__ import annotations

import json
from collections.abc import Mapping

from relayout.alternates.registry import Found, declaration_of, described, registry_of
from relayout.config.model import Alternate, Cluster, PartitionKey
from relayout.table.alternates import ALTERNATE_DECLARATION, ALTERNATE_NAME, ALTERNATE_OF, BASE_FIELDS
from relayout.table.facts import MANAGED, Spec, TableFacts
from relayout.table.names import TableName

BY_GEO = Alternate("by_geo", (PartitionKey("geo", None, "bucket[4]"),), ("geo", "year desc"))
BY_CURVE = Alternate("by_curve", cluster=Cluster("hilbert", ("geo", "year")))
FIELDS = {"year": 1, "geo": 2}


def table(name: str, properties: Mapping[str, str]) -> TableFacts:
    return TableFacts(TableName(("db",), name), "u-1", "", "", 2, (), (Spec(0, ()),), 0, (), (), properties)


BASE = table("income", {})


def found(name: str, alternate: Alternate, fields: Mapping[str, int] = FIELDS, of: str = "u-1") -> Found:
    told = {
        MANAGED: "true",
        ALTERNATE_OF: of,
        ALTERNATE_NAME: alternate.name,
        ALTERNATE_DECLARATION: declaration_of(alternate),
        BASE_FIELDS: json.dumps(fields),
    }
    return Found(table(name, told))


def test_a_declaration_says_how_rows_lie_and_nothing_else() -> None:
    renamed = Alternate("regions", BY_GEO.partitions, BY_GEO.sort, batch_partition_columns=("year",))
    assert declaration_of(renamed) == declaration_of(BY_GEO)
    assert described(declaration_of(BY_GEO)) == "bucket[4](geo), sorted by geo, year desc"
    assert described(declaration_of(BY_CURVE)) == "unpartitioned, clustered along hilbert(geo, year)"


def test_alternates_are_matched_by_layout_and_not_by_name() -> None:
    one, other = found("_mv_a", Alternate("old name", BY_GEO.partitions, BY_GEO.sort)), found("_mv_b", BY_CURVE)
    registry = registry_of([BY_CURVE, BY_GEO], [one, other], BASE, FIELDS)
    assert registry.matched == ((BY_CURVE, other), (BY_GEO, one))
    assert registry.others == ()


def test_what_two_runs_made_twice_counts_once() -> None:
    registry = registry_of([BY_GEO], [found("_mv_b", BY_GEO), found("_mv_a", BY_GEO)], BASE, FIELDS)
    assert registry.matched == ((BY_GEO, found("_mv_a", BY_GEO)),)
    assert registry.others == (found("_mv_b", BY_GEO),)


def test_an_alternate_of_another_table_is_nobodys_business() -> None:
    registry = registry_of([BY_GEO], [found("_mv_a", BY_GEO, of="u-2")], BASE, FIELDS)
    assert (registry.matched, registry.others) == (((BY_GEO, None),), ())


def test_a_column_that_took_anothers_name_makes_the_alternate_a_stranger() -> None:
    renamed = {"year": 1, "remark": 2, "geo": 3}
    registry = registry_of([BY_GEO], [found("_mv_a", BY_GEO)], BASE, renamed)
    assert registry.matched == ((BY_GEO, None),)
    assert registry.others == (found("_mv_a", BY_GEO),)
    assert registry.successor_of(found("_mv_a", BY_GEO)) == (BY_GEO, None)


def test_a_column_that_was_added_makes_no_difference() -> None:
    registry = registry_of([BY_GEO], [found("_mv_a", BY_GEO)], BASE, {**FIELDS, "extra": 9})
    assert registry.matched == ((BY_GEO, found("_mv_a", BY_GEO)),)
