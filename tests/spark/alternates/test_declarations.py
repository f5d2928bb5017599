"""What may be declared, what becomes of declarations that change, and columns that come and go."""

from __future__ import annotations

import pytest

from relayout.commit.receipts import Outcome
from relayout.report.plan_text import plan_text
from relayout.table.alternate_plans import Step
from relayout.table.alternates import ALTERNATES
from tests.spark.alternates.conftest import BY_GEO, SORTED, Farm

REORDERED = {"name": "by_geo", "partition": {"keys": ["geo", "year"]}}


def test_a_pure_reordering_is_refused_alone_and_what_is_proposed_instead_works(farm: Farm) -> None:
    farm.years(2020)
    keys = {"keys": ["year", "geo"]}
    lake = farm.declare(REORDERED, SORTED, partitions=keys)
    plan = lake.plan()
    refused, _ = plan.tables[0].alternates
    assert refused.step is Step.REFUSED
    assert refused.replacement.splitlines() == [
        "- name: by_geo",
        "  partition: {keys: [{name: geo, transform: 'bucket[16]'}]}",
        "  sort: [geo, year]",
    ]
    assert "order of partition keys saves no file" in " ".join(plan_text(plan).split())
    assert lake.apply().complete
    farm.assert_in_step("by_value")
    assert set(farm.alternates) == {"by_value"}
    assert not lake.plan().has_work
    proposed = {
        "name": "by_geo",
        "partition": {"keys": [{"name": "geo", "transform": "bucket[16]"}]},
        "sort": ["geo", "year"],
    }
    farm.declare(proposed, SORTED, partitions=keys).apply()
    farm.assert_in_step("by_geo", "by_value")


def test_every_transform_can_make_an_alternate(farm: Farm) -> None:
    moment = "2024-02-29T23:59:59"
    for year in (2020, 2021):
        farm.source(
            year, *({"geo": f"x{n}ü", "value": n, "at": moment} for n in range(3)), {"geo": None, "value": None}
        )
    transforms = [
        ("geo", "identity"), ("geo", "bucket[3]"), ("geo", "truncate[2]"), ("at", "year"), ("at", "month"),
        ("at", "day"), ("at", "hour"), ("value", "truncate[2]"), ("value", "bucket[2]"),
    ]  # fmt: skip
    alternates = [
        {"name": f"a{number}", "partition": {"keys": [{"name": column, "transform": how}]}}
        for number, (column, how) in enumerate(transforms)
    ]
    lake = farm.declare(*alternates, schema={"at": "timestamp"})
    assert lake.apply().complete
    farm.assert_in_step()
    assert len(farm.alternates) == len(transforms)


def test_the_old_layout_serves_until_the_new_one_is_complete_and_goes_with_prune(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    farm.years(2020, 2021)
    farm.declare(BY_GEO).apply()
    old = farm.alternates["by_geo"].table
    changed = {**BY_GEO, "partition": {"keys": [{"name": "geo", "transform": "bucket[2]"}]}}
    lake = farm.declare(changed)
    farm.years(2020, salt=3)
    with monkeypatch.context() as patched:
        patched.setattr("relayout.jobs.alternates.keeper.lay_out", _broken)
        receipt = lake.apply(prune=True)
    assert receipt.dropped == ()
    assert not receipt.complete
    receipt = lake.apply(prune=True)
    assert receipt.dropped == (old,)
    farm.assert_in_step("by_geo")
    table = lake.table("income")
    assert table.properties[ALTERNATES] == farm.alternates["by_geo"].table != old
    assert not lake.plan().has_work


def _broken(*_: object) -> object:
    raise OSError("no space left on device")


def test_an_undeclared_alternate_goes_only_with_prune(farm: Farm) -> None:
    farm.years(2020)
    farm.declare(BY_GEO, SORTED).apply()
    lake = farm.declare(SORTED)
    (drop,) = lake.plan().drops
    assert drop.alternate == ("alternate by_geo of income, bucket[4](geo), sorted by geo, year: is no longer declared")
    lake.apply()
    assert set(farm.alternates) == {"by_geo", "by_value"}
    lake.apply(prune=True)
    assert set(farm.alternates) == {"by_value"}
    assert lake.table("income").properties[ALTERNATES] == farm.alternates["by_value"].table


def test_a_renamed_declaration_is_the_same_alternate(farm: Farm) -> None:
    farm.years(2020)
    farm.declare(BY_GEO).apply()
    table = farm.alternates["by_geo"].table
    farm.years(2021)
    farm.declare({**BY_GEO, "name": "regions"}).apply()
    assert farm.alternates["regions"].table == table
    farm.assert_in_step("regions")


def test_a_failing_alternate_never_holds_up_its_base(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    farm.years(2020, 2021)
    lake = farm.declare(BY_GEO)
    with monkeypatch.context() as patched:
        patched.setattr("relayout.jobs.alternates.keeper.AlternatePublisher.publish", _broken)
        receipt = lake.apply()
    assert [batch.outcome for batch in receipt.tables[0].batches] == [Outcome.DONE, Outcome.DONE]
    assert [(one.outcome, one.note) for one in receipt.tables[0].alternates] == [
        (Outcome.FAILED, "no space left on device")
    ]
    assert not receipt.complete
    assert lake.plan().has_work
    assert lake.apply().complete
    farm.assert_in_step("by_geo")


def test_new_columns_reach_the_alternate(farm: Farm) -> None:
    farm.years(2020)
    farm.declare(BY_GEO).apply()
    farm.source(2021, {"geo": "g1", "value": 2, "note": "n", "extra": {"a": [1, 2]}})
    assert farm.lake.apply().complete
    farm.assert_in_step("by_geo")


def test_a_column_that_took_anothers_name_is_never_read_from_the_alternate(farm: Farm) -> None:
    farm.years(2020)
    lake = farm.declare(BY_GEO)
    lake.apply()
    old = farm.alternates["by_geo"].table
    lake.spark.sql("ALTER TABLE lake.db.income RENAME COLUMN note TO remark")
    lake.spark.sql("ALTER TABLE lake.db.income ADD COLUMN note string")
    lake.apply()
    (planned,) = lake.plan().tables[0].alternates
    assert planned.table != old
    assert farm.rows(planned.table) == farm.rows("income")


def test_a_table_without_batches_and_odd_names_has_alternates_too(farm: Farm) -> None:
    for year in (2020, 2021):
        farm.source(year, {'the geo\'s "name"': "a", "v": 1}, {'the geo\'s "name"': None, "v": 2})
    lake = farm.declare(
        {"name": 'o\'dd "one"', "partition": {"keys": [{"name": 'the geo\'s "name"', "transform": "bucket[2]"}]}},
        partitions={"keys": []},
        batch_partition_columns=[],
        incremental_keys=[],
    )
    assert lake.apply().complete
    farm.assert_in_step()
    lake.sql("DELETE FROM income WHERE v = 1")
    farm.assert_in_step()


def test_verify_finds_a_row_that_is_not_the_tables(farm: Farm) -> None:
    farm.years(2020)
    lake = farm.declare(BY_GEO)
    lake.apply()
    assert lake.verify("income").clean
    found = farm.alternates["by_geo"]
    pairs = found.facts.ancestry[0].summary.items()
    frame = lake.spark.sql("SELECT * FROM lake.db.income LIMIT 1")
    writer = frame.writeTo(f"lake.db.{found.table}")
    for key, value in pairs:
        if key.startswith("relayout."):
            writer = writer.option(f"snapshot-property.{key}", value)
    writer.append()
    checked = lake.verify("income")
    assert not checked.clean
    assert checked.alternates[0].differences[0] == "rows: 7 in the alternate, 6 in the table"


def test_a_table_that_is_no_longer_declared_goes_with_its_alternates(farm: Farm) -> None:
    farm.years(2020)
    farm.declare(BY_GEO).apply()
    lake = farm.undeclare()
    assert [drop.alternate.partition(",")[0] for drop in lake.plan().drops] == ["", "alternate by_geo of income"]
    receipt = lake.apply(prune=True)
    assert len(receipt.dropped) == 2
    assert farm.alternates == {}


def test_a_table_that_others_fill_has_alternates_too(farm: Farm) -> None:
    lake = farm.declare(BY_GEO, source=None)
    lake.sql("CREATE NAMESPACE IF NOT EXISTS db")
    assert not lake.plan().has_work
    lake.sql("CREATE TABLE income (year INT, geo STRING, value INT) PARTITIONED BY (year)")
    lake.sql("INSERT INTO income VALUES (2020, 'g1', 1), (2021, 'g2', 2)")
    receipt = lake.apply()
    assert [(one.action, one.rows) for one in receipt.tables[0].alternates] == [("built", 2)]
    farm.assert_in_step("by_geo")
    lake.sql("INSERT INTO income VALUES (2021, 'g3', 3)")
    farm.assert_in_step("by_geo")
    assert not lake.plan().has_work
