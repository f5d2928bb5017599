"""Whatever changes a base reaches its alternates, and only what changed is laid out again."""

from __future__ import annotations

from typing import Any

from relayout.alternates.freshness import freshest
from tests.spark.alternates.conftest import BY_GEO, SORTED, Farm


def test_a_statement_redoes_only_the_batches_that_it_touched(farm: Farm) -> None:
    farm.years(2020, 2021, 2022)
    lake = farm.declare(BY_GEO, SORTED)
    lake.apply()
    merge = (
        "MERGE INTO income t USING (SELECT 2020 AS year, 'g1' AS geo) s ON t.year = s.year AND t.geo = s.geo "
        "WHEN MATCHED THEN UPDATE SET value = 77 WHEN NOT MATCHED THEN INSERT (year, geo) VALUES (s.year, s.geo)"
    )
    for statement, redone in (
        ("UPDATE income SET note = 'seen' WHERE year = 2021 AND value > 3", 6),
        ("DELETE FROM income WHERE year = 2022", 0),
        ("INSERT INTO income (year, geo, value) VALUES (2030, 'g9', 1), (NULL, 'g8', 2)", 2),
        (merge, 6),
    ):
        lake.sql(statement)
        farm.assert_in_step("by_geo", "by_value")
        newest = farm.alternates["by_geo"].facts.ancestry[0]
        assert int(newest.summary.get("added-records", "0")) == redone, statement


def test_deletes_in_place_follow_where_files_mix_batches(farm: Farm) -> None:
    farm.years(2020, 2021, 2022)
    lake = farm.declare(BY_GEO, partitions={"keys": []})
    lake.apply()
    base = f"{lake.config.catalog.name}.db.income"
    lake.spark.sql(f"ALTER TABLE {base} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    lake.spark.sql("CALL lake.system.rewrite_data_files(table => 'db.income', options => map('rewrite-all', 'true'))")
    assert not lake.plan().has_work
    lake.sql("DELETE FROM income WHERE year = 2021 AND geo = 'g1'")
    farm.assert_in_step("by_geo")
    lake.sql("DELETE FROM income WHERE year = 2020")
    farm.assert_in_step("by_geo")


def test_changes_that_others_make_are_caught_up_by_the_next_run(farm: Farm) -> None:
    farm.years(2020, 2021)
    lake = farm.declare(BY_GEO)
    lake.apply()
    lake.spark.sql("UPDATE lake.db.income SET value = value + 100 WHERE year = 2020")
    assert lake.plan().has_work
    receipt = lake.apply()
    assert [(one.action, one.rows) for one in receipt.tables[0].alternates] == [("refreshed", 6)]
    farm.assert_in_step("by_geo")
    assert not lake.plan().has_work


def test_edits_of_the_base_survive_in_an_alternate_that_is_built_later(farm: Farm) -> None:
    farm.years(2020)
    farm.declare().apply()
    farm.lake.sql("UPDATE income SET value = -1 WHERE geo = 'g1'")
    farm.declare(BY_GEO).apply()
    farm.assert_in_step("by_geo")


def test_alternates_follow_a_rollback_and_what_comes_after(farm: Farm) -> None:
    farm.years(2020, 2021)
    lake = farm.declare(BY_GEO, SORTED)
    lake.apply()
    loaded = lake.table("income").metadata.current_snapshot_id
    assert loaded is not None
    lake.sql("DELETE FROM income WHERE year = 2020")
    done = lake.rollback("income", loaded)
    assert done.complete
    assert [one.action for one in done.alternates] == ["rolled back", "rolled back"]
    farm.assert_in_step("by_geo", "by_value")
    farm.years(2021, salt=5)
    lake.apply()
    farm.assert_in_step("by_geo", "by_value")


def test_a_removed_batch_goes_from_the_alternate_too(farm: Farm, tmp_path: Any) -> None:
    farm.years(2020, 2021)
    lake = farm.declare(BY_GEO, on_removed="delete")
    lake.apply()
    (tmp_path / "in" / "income_2020_a.json").unlink()
    receipt = lake.apply(prune=True)
    assert receipt.complete
    farm.assert_in_step("by_geo")
    assert sum(farm.rows("income").values()) == 6


def test_a_compacted_alternate_and_a_compacted_base_stay_in_step(farm: Farm) -> None:
    farm.years(2020, 2021)
    lake = farm.declare(BY_GEO)
    lake.apply()
    table = farm.alternates["by_geo"].table
    for name in (table, "income"):
        lake.spark.sql(
            f"CALL lake.system.rewrite_data_files(table => 'db.{name}', options => map('rewrite-all', 'true'))"
        )
    assert not lake.plan().has_work
    assert farm.rows(table) == farm.rows("income")
    farm.years(2021, salt=9)
    lake.apply()
    farm.assert_in_step("by_geo")


def test_a_change_made_to_an_alternate_is_undone(farm: Farm) -> None:
    farm.years(2020, 2021)
    lake = farm.declare(BY_GEO)
    lake.apply()
    lake.spark.sql(f"DELETE FROM lake.db.{farm.alternates['by_geo'].table} WHERE geo = 'g1'")
    assert lake.plan().has_work
    assert lake.apply().complete
    farm.assert_in_step("by_geo")


def test_an_older_base_is_served_by_the_alternates_snapshot_of_that_time(farm: Farm) -> None:
    farm.years(2020, 2021)
    lake = farm.declare(BY_GEO)
    lake.apply()
    farm.years(2020, salt=50)
    lake.apply()
    base = farm.base.ancestry
    place = next(number for number, one in enumerate(base) if number and one.operation != "replace")
    found = freshest(farm.alternates["by_geo"].facts.ancestry, base[place:])
    assert found is not None
    assert found.account.whole
    old = lake.table("income").scan(snapshot_id=base[place].snapshot_id).to_arrow()
    mine = lake.table(farm.alternates["by_geo"].table).scan(snapshot_id=found.snapshot_id).to_arrow()
    assert sorted(old.to_pylist(), key=repr) == sorted(mine.select(old.column_names).to_pylist(), key=repr)


def test_queries_are_served_by_what_was_built_and_stay_right_when_it_is_behind(farm: Farm) -> None:
    farm.years(2020, 2021, 2022, rows=400)
    lake = farm.declare(BY_GEO)
    lake.apply()
    query = "SELECT year, count(*) AS n, sum(value) AS total FROM income WHERE geo = 'g1' GROUP BY year ORDER BY year"
    routed = lake.sql(query, require_route=True).collect()
    assert routed == lake.sql(query, route=False).collect()
    assert [row.n for row in routed] == [100, 100, 100]
    lake.spark.sql("DELETE FROM lake.db.income WHERE year = 2021 AND geo = 'g1' AND value < 40")
    assert [row.n for row in lake.sql(query).collect()] == [100, 90, 100]
    lake.apply()
    assert [row.n for row in lake.sql(query, require_route=True).collect()] == [100, 90, 100]
