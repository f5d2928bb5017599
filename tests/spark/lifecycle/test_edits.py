"""Rows that users change by themselves are theirs until they say otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from relayout.api import Lake
from relayout.commit import batches as committing
from relayout.commit.receipts import Outcome

pytestmark = pytest.mark.spark

LakeOf = Callable[..., Lake]
Rows = Callable[[Lake, str], list[tuple[Any, ...]]]
Pending = Callable[..., dict[str, str]]

EDITED = "load, source changed, needs --overwrite-edits"


def yearly(source: str, **told: Any) -> dict[str, Any]:
    return {"source": source, "partitions": {"keys": [{"name": "year", "type": "int"}]}, **told}


def test_each_kind_of_statement_protects_the_batch_it_touched_and_no_other(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    years = range(2015, 2021)
    for year in years:
        downloads.write(f"{year}.json", {"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    table = yearly(downloads.pattern("{year}.json"))
    lake = lake_of({"t": table})
    lake.apply()
    lake.sql("INSERT INTO t VALUES (9, 'mine', 2015)")
    lake.sql("DELETE FROM t WHERE year = 2016 AND id = 1")
    lake.sql("UPDATE t SET name = 'mine' WHERE year = 2017 AND id = 1")
    lake.sql("DELETE FROM t WHERE year = 2018")
    lake.sql(
        "MERGE INTO t USING (SELECT 2 AS id, 2019 AS year) AS s ON t.id = s.id AND t.year = s.year "
        "WHEN MATCHED THEN UPDATE SET name = 'mine'"
    )
    lake.sql("INSERT INTO t VALUES (9, 'mine', 2099)")
    edited = rows_in(lake, "t")
    # Sources that did not change are no reason to touch anything.
    assert not lake.plan().has_work

    for year in years:
        downloads.write(f"{year}.json", {"id": 3, "name": "new"})
    plan = lake.plan()
    assert pending(plan) == {**{str(year): EDITED for year in years[:-1]}, "2020": "load, source changed"}
    inserted = next(batch for batch in plan.tables[0].batches if batch.key.items == (("year", 2015),))
    author = next(snapshot.snapshot_id for snapshot in lake.table("t").snapshots() if _adds_one_row(snapshot))
    assert inserted.changes[-1] == (
        f"edited: rows of this batch were changed by snapshot {author}, which was not an ingestion"
    )

    receipt = lake.apply()
    told = {dict(batch.key.items)["year"]: batch for batch in receipt.tables[0].batches}
    assert [year for year, batch in told.items() if batch.outcome is Outcome.DONE] == [2020]
    assert told[2015].note == f"{inserted.changes[-1]}; needs --overwrite-edits"
    assert rows_in(lake, "t") == sorted(
        [*(row for row in edited if row[2] != 2020), (3, "new", 2020)],
        key=repr,
    )

    assert lake.apply(overwrite_edits=True).count(Outcome.DONE) == 5
    assert rows_in(lake, "t") == sorted([*((3, "new", year) for year in years), (9, "mine", 2099)], key=repr)
    assert not lake.plan().has_work

    # Taking out a batch that somebody changed takes both words.
    lake.sql("UPDATE t SET name = 'mine' WHERE year = 2020")
    downloads.remove("2020.json")
    downloads.remove("2019.json")
    deleting = lake_of({"t": {**table, "on_removed": "delete"}})
    assert pending(deleting.plan()) == {
        "2019": "remove, source removed, needs --prune",
        "2020": "remove, source removed, needs --prune --overwrite-edits",
    }
    assert deleting.apply(prune=True).count(Outcome.DONE) == 1
    assert deleting.apply(overwrite_edits=True).count(Outcome.DONE) == 0
    assert (3, "mine", 2020) in rows_in(lake, "t")
    assert deleting.apply(prune=True, overwrite_edits=True).count(Outcome.DONE) == 1
    assert [row[2] for row in rows_in(lake, "t")] == [2015, 2016, 2017, 2018, 2099]


def _adds_one_row(snapshot: Any) -> bool:
    return bool(snapshot.summary) and snapshot.summary["added-records"] == "1"


def test_edits_are_told_apart_where_batches_share_a_partition(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending
) -> None:
    for region in ("north", "south", "west"):
        for day in ("2020-01-01", "2020-01-02"):
            downloads.write(f"{region}_{day}.json", {"id": 1}, {"id": 2})
    source = downloads.pattern("{region}_{day}.json")
    cut = {"source": source, "schema": {"day": "date"}, "batch_partition_columns": ["region", "day"]}
    lake = lake_of({"v2": cut, "v3": {**cut}})
    lake.apply()
    for table in ("v2", "v3"):
        lake.sql(
            f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '{table[1]}', "
            "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
        )
        lake.sql(f"DELETE FROM {table} WHERE region = 'south' AND day = DATE'2020-01-01' AND id = 1")
        lake.sql(f"INSERT INTO {table} VALUES (7, DATE'2020-01-02', 'west')")
    for region in ("north", "south", "west"):
        for day in ("2020-01-01", "2020-01-02"):
            downloads.write(f"{region}_{day}.json", {"id": 3})
    for table in ("v2", "v3"):
        assert pending(lake.plan(), table) == {
            "north/2020-01-01": "load, source changed",
            "north/2020-01-02": "load, source changed",
            "south/2020-01-01": EDITED,
            "south/2020-01-02": "load, source changed",
            "west/2020-01-01": "load, source changed",
            "west/2020-01-02": EDITED,
        }
    assert lake.apply().count(Outcome.DONE) == 8
    expected = [
        (1, "2020-01-02", "west"),
        (2, "2020-01-01", "south"),
        (2, "2020-01-02", "west"),
        (3, "2020-01-01", "north"),
        (3, "2020-01-01", "west"),
        (3, "2020-01-02", "north"),
        (3, "2020-01-02", "south"),
        (7, "2020-01-02", "west"),
    ]
    for table in ("v2", "v3"):
        assert [(row[0], str(row[1]), row[2]) for row in rows_in(lake, table)] == expected


def test_rows_that_land_in_a_batch_while_it_is_loaded_are_not_replaced_unseen(
    lake_of: LakeOf, downloads: Any, rows_in: Rows, pending: Pending, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year in (2020, 2021):
        downloads.write(f"{year}.json", {"id": 1})
    table = yearly(downloads.pattern("{year}.json"))
    lake, other = lake_of({"t": table}), lake_of({"t": table})
    lake.apply()
    for year in (2020, 2021):
        downloads.write(f"{year}.json", {"id": 2})

    inserted: list[Any] = []

    def insert_beside() -> None:
        writer = threading.Thread(target=lambda: inserted.append(other.sql("INSERT INTO t VALUES (9, 2021)")))
        writer.start()
        writer.join()

    def interfere_at(wanted: str) -> None:
        def passing(place: str) -> None:
            if place == wanted and not inserted:
                insert_beside()

        monkeypatch.setattr(committing, "passing", passing)

    # Just before the commit, when everything was looked at already: only Iceberg's own validation can see it.
    interfere_at("before-commit")
    other.spark.conf.get("spark.app.name")
    receipt = lake.apply()
    assert len(inserted) == 1
    outcomes = {str(batch.key): (batch.outcome, batch.note) for batch in receipt.tables[0].batches}
    assert outcomes["{year=2020}"] == (Outcome.DONE, "")
    assert outcomes["{year=2021}"][0] is Outcome.SKIPPED
    assert outcomes["{year=2021}"][1].endswith("needs --overwrite-edits")
    assert rows_in(lake, "t") == [(1, 2021), (2, 2020), (9, 2021)]
    assert pending(lake.plan()) == {"2021": EDITED}

    # The same when a user said that edits may go: the rows are replaced, in one more round.
    inserted.clear()
    assert lake.apply(overwrite_edits=True).count(Outcome.DONE) == 1
    assert len(inserted) == 1
    assert rows_in(lake, "t") == [(2, 2020), (2, 2021)]
