"""Compaction keeps every row of every kind of table, and takes its deletes along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from relayout.api import Lake
from relayout.commit.rewrite_receipts import GroupOutcome
from tests.spark.compact.scene import LINEAGE, Scene

pytestmark = pytest.mark.spark

EVERY_TYPE = (
    "id BIGINT, part STRING, flag BOOLEAN, small INT, ratio FLOAT, x DOUBLE, price DECIMAL(20, 3), day DATE, "
    "at TIMESTAMP, local TIMESTAMP_NTZ, raw BINARY, st STRUCT<p: INT, q: STRUCT<r: STRING>>, "
    "ar ARRAY<STRUCT<e: INT>>, m MAP<STRING, DECIMAL(5, 2)>"
)
ONE_ROW = (
    "SELECT id + {0}, CASE WHEN id % 3 = 0 THEN NULL ELSE concat('p ', id % 2, '/ä') END, id % 2 = 0, CAST(id AS INT), "
    "CASE WHEN id = 1 THEN float('NaN') ELSE CAST(id AS FLOAT) END, CASE WHEN id = 2 THEN NULL ELSE -id / 4 END, "
    "CAST(-id AS DECIMAL(20, 3)), DATE '1969-12-30' + CAST(id AS INT), TIMESTAMP '1960-05-05 01:02:03.000004Z', "
    "TIMESTAMP_NTZ '2020-02-29 23:59:59.999999', CAST(concat('b', id) AS BINARY), "
    "named_struct('p', CAST(id AS INT), 'q', named_struct('r', IF(id = 4, NULL, 'z'))), "
    "array(named_struct('e', CAST(id AS INT)), NULL), map('k', CAST(id AS DECIMAL(5, 2))) FROM range(6)"
)


@pytest.fixture(scope="module")
def lake(make_lake: Callable[..., Lake], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = make_lake(tmp_path_factory.mktemp("rewriting") / "lake", {})
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    return made


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_type_reads_the_same_and_each_partition_becomes_one_file(lake: Lake, version: int) -> None:
    scene = Scene(lake, f"types_{version}")
    scene.sql(
        f"CREATE TABLE {{t}} ({EVERY_TYPE}) USING iceberg PARTITIONED BY (part, truncate(3, id)) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')",
        *(f"INSERT INTO {{t}} {ONE_ROW.format(0)}" for _ in range(3)),
    )
    if version > 1:
        scene.sql("DELETE FROM {t} WHERE small = 5")
    lineage = scene.rows(f"id, {LINEAGE}") if version == 3 else []
    before = repr(scene.rows())
    assert len(scene.files()) > len({row.partition for row in scene.files()})

    receipt = lake.compact(scene.name)
    assert {(group.outcome, group.note) for group in receipt.groups} == {(GroupOutcome.DONE, "")}
    assert receipt.complete
    # As text, in which NaN is equal to itself.
    assert repr(scene.rows()) == before
    assert len(scene.files()) == len({row.partition for row in scene.files()})
    assert scene.deletes() == 0
    assert scene.summary()["operation"] == "replace"
    assert scene.summary()["relayout.plan-id"] == receipt.plan_id
    if version == 3:
        assert scene.rows(f"id, {LINEAGE}") == lineage
    again = lake.compact(scene.name)
    assert (again.groups, again.snapshot_ids) == ((), ())


def test_columns_that_were_renamed_widened_dropped_and_added_again_mean_what_they_mean_now(lake: Lake) -> None:
    scene = Scene(lake, "evolved_columns")
    scene.sql(
        "CREATE TABLE {t} (id INT, a STRING, b DECIMAL(5, 2), gone STRING, p STRING) USING iceberg PARTITIONED BY (p)",
        "INSERT INTO {t} VALUES (1, 'a', 1.25, 'old', 'x'), (2, NULL, NULL, 'old', 'x')",
        'ALTER TABLE {t} RENAME COLUMN a TO `the "name"`',
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN b TYPE DECIMAL(12, 2)",
        "ALTER TABLE {t} DROP COLUMN gone",
        "ALTER TABLE {t} ADD COLUMN gone STRING",
        "ALTER TABLE {t} RENAME COLUMN p TO region",
        "INSERT INTO {t} VALUES (5000000000, 'n', 1234567890.25, 'x', 'new')",
        "INSERT INTO {t} VALUES (3, 'n', 0.5, 'x', 'newer')",
    )
    before = scene.rows()
    receipt = lake.compact(scene.name)
    assert (receipt.complete, scene.rows()) == (True, before)
    assert len(scene.files()) == 1


def test_files_that_were_added_from_a_folder_of_spark_are_read_by_name(lake: Lake, tmp_path: Any) -> None:
    scene = Scene(lake, "imported")
    folder = str(tmp_path / "hive")
    lake.spark.sql("SELECT id, concat('v', id) AS v, id % 2 AS k FROM range(8)").repartition(2).write.partitionBy(
        "k"
    ).parquet(folder)
    scene.sql(
        "CREATE TABLE {t} (id BIGINT, v STRING, k BIGINT) USING iceberg PARTITIONED BY (k)",
        f"CALL lake.system.add_files(table => 'db.{{t}}', source_table => '`parquet`.`{folder}`')",
    )
    before = scene.rows()
    receipt = lake.compact(scene.name)
    assert (receipt.complete, scene.rows(), len(scene.files())) == (True, before, 2)


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_by_key_take_older_rows_of_their_own_partition_and_global_ones_of_all(lake: Lake, version: int) -> None:
    scene = Scene(lake, f"keys_{version}")
    scene.sql(
        f"CREATE TABLE {{t}} (id BIGINT, p STRING) USING iceberg TBLPROPERTIES ('format-version' = '{version}')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, NULL)",
        "ALTER TABLE {t} ADD PARTITION FIELD p",
        "INSERT INTO {t} VALUES (1, 'a'), (1, 'b'), (4, 'a'), (4, 'b')",
        "INSERT INTO {t} VALUES (7, 'a'), (7, 'b')",
    )
    scene.delete_by_key({"id": pa.array([1, 3], pa.int64())}, spec_id=0)
    scene.sql("INSERT INTO {t} VALUES (1, 'a'), (1, 'b')")
    scene.delete_by_key({"id": pa.array([4], pa.int64()), "p": pa.array(["a"])}, spec_id=1, partition=["a"])
    before = scene.rows()
    assert before == [(1, "a"), (1, "b"), (2, "a"), (4, "b"), (7, "a"), (7, "b")]
    lineage = scene.rows(f"id, p, {LINEAGE}") if version == 3 else []

    receipt = lake.compact(scene.name, rewrite_all=True)
    assert (receipt.complete, scene.rows()) == (True, before)
    assert receipt.sum("deleted_rows") == 5
    assert scene.deletes() == 0
    if version == 3:
        assert scene.rows(f"id, p, {LINEAGE}") == lineage


@pytest.mark.parametrize(
    ("arrangement", "by", "skips"),
    [("zorder", ["a", "b"], ["a", "b"]), ("hilbert", ["a", "b"], ["a", "b"]), ("sort", ["b desc"], ["b"])],
)
def test_ordered_rows_are_the_same_rows_in_files_of_narrow_ranges(
    lake: Lake, arrangement: str, by: list[str], skips: list[str]
) -> None:
    scene = Scene(lake, f"ordered_{arrangement}")
    scene.sql(
        "CREATE TABLE {t} (a INT, b STRING, pad STRING) USING iceberg "
        "TBLPROPERTIES ('write.parquet.compression-codec' = 'uncompressed')",
        "INSERT INTO {t} SELECT CAST(pmod(hash(id), 900) AS INT), concat('prefix-', 100 + pmod(hash(id, 1), 900)), "
        "repeat(md5(CAST(id AS STRING)), 20) FROM range(24000)",
        "INSERT INTO {t} VALUES (NULL, NULL, 'n')",
    )
    before = scene.rows("a, b, md5(pad)")
    receipt = lake.optimize(scene.name, arrangement, by, target_file_size_bytes=1 << 20)
    assert (receipt.complete, scene.rows("a, b, md5(pad)")) == (True, before)
    files = [row.readable_metrics for row in scene.files()]
    assert len(files) > 8
    wanted = {"a": range(0, 900, 50), "b": [f"prefix-{number}" for number in range(100, 1000, 50)]}
    for column in skips:
        read = sum(
            file[column]["lower_bound"] <= value <= file[column]["upper_bound"]
            for file in files
            for value in wanted[column]
        )
        assert read < 0.6 * len(files) * len(wanted[column])


def test_what_kernels_cannot_read_goes_by_spark_and_the_receipt_says_so(lake: Lake) -> None:
    scene = Scene(lake, "nested")
    scene.sql(
        "CREATE TABLE {t} (id BIGINT, st STRUCT<p: INT, q: STRING>) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')",
        "INSERT INTO {t} VALUES (1, named_struct('p', 1, 'q', 'x')), (2, NULL), (3, named_struct('p', 3, 'q', 'x'))",
        "ALTER TABLE {t} RENAME COLUMN st.q TO r",
        "INSERT INTO {t} VALUES (4, named_struct('p', 4, 'r', 'y'))",
        "DELETE FROM {t} WHERE id = 3",
    )
    before, lineage = scene.rows(), scene.rows(f"id, {LINEAGE}")
    receipt = lake.compact(scene.name)
    assert [(group.engine, group.outcome) for group in receipt.groups] == [("spark", GroupOutcome.DONE)]
    assert (scene.rows(), scene.rows(f"id, {LINEAGE}"), len(scene.files())) == (before, lineage, 1)
