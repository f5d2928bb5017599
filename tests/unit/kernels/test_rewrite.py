"""A rewritten group holds exactly the live rows of its files, read as the table means them today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.kernels.groups import Group, column, rows_of

ID, NAME = column("id", 1, "long"), column("full name", 2, "string")


def longs(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def test_files_of_several_schemas_are_read_by_field_id(tmp_path: Path) -> None:
    group = Group(tmp_path, {ID: "long", NAME: "string", column("n", 7, "int", "CAST(42 AS INTEGER)"): "int"})
    group.file(1, {("id", 1): pa.array([1, None], pa.int32()), ("name", 2): pa.array(["a", "b"])})
    group.file(
        2, {("x", 2): pa.array(["c"]), ("id", 1): longs(3), ("gone", 9): longs(0), ("n", 7): pa.array([5], pa.int32())}
    )
    result = group.rewrite()
    assert sorted(rows_of(result), key=repr) == [(1, "a", 42), (3, "c", 5), (None, "b", 42)]
    written = pq.read_schema(result["outputs"][0]["file-path"])
    assert [field.metadata[b"PARQUET:field_id"] for field in written] == [b"1", b"2", b"7"]


def test_a_column_that_only_the_partition_tells_is_written_into_the_file(tmp_path: Path) -> None:
    group = Group(tmp_path, {ID: "long", column("year", 5, "int"): "int"})
    group.file(1, {("id", 1): longs(1)}, constants=((5, "2020"),), partition=(2020,))
    group.file(1, {("id", 1): longs(2), ("year", 5): pa.array([2020], pa.int32())}, constants=((5, "2020"),))
    assert sorted(rows_of(group.rewrite())) == [(1, 2020), (2, 2020)]


def test_files_without_field_ids_are_read_by_the_name_mapping(tmp_path: Path) -> None:
    group = Group(tmp_path, {ID: "long"})
    group.file(1, {("old_id", None): longs(1, 2)})
    assert group.rewrite()["cannot"] == "files without field ids and the table has no name mapping"
    group.name_mapping = {"id": 1, "old_id": 1}
    assert rows_of(group.rewrite()) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (pa.array([b"\xff"]), "id is BLOB in a file, not BIGINT"),
        (pa.array([1.5]), "id is DOUBLE in a file, not BIGINT"),
        (pa.array([1], pa.uint32()), "id is UINTEGER in a file, not BIGINT"),
    ],
)
def test_a_type_that_a_cast_could_change_is_left_to_spark(tmp_path: Path, values: pa.Array, why: str) -> None:
    group = Group(tmp_path, {ID: "long"})
    group.file(1, {("id", 1): values})
    assert group.rewrite()["cannot"] == why
    assert not list(tmp_path.glob("out/**/*.parquet"))


def test_positions_vectors_and_keys_take_exactly_their_rows(tmp_path: Path) -> None:
    group = Group(tmp_path, {ID: "long"}, lineage=True)
    first = group.file(1, {("id", 1): longs(1, 2, 3, None)}, first_row_id=100)
    group.file(3, {("id", 1): longs(5, 6)}, first_row_id=200)
    group.delete_positions(2, [(first, 1), (first, 1), ("another file", 0)], [0])
    group.delete_keys(3, {("id", 1): longs(5, None)}, [0, 1])
    group.delete_vector(4, 1, [1])
    result = group.rewrite()
    # A key reaches strictly older rows, and null is a key like any other.
    assert rows_of(result) == [(1, 100, 1), (3, 102, 1), (5, 200, 3)]
    assert result["before"] == {"rows": 3, "deleted": 3, "nulls": {"1": 0}}


def test_rows_keep_the_ids_that_an_earlier_rewrite_gave_them(tmp_path: Path) -> None:
    group = Group(tmp_path, {ID: "long"}, lineage=True)
    ids = {("_row_id", 2147483540): longs(7, None), ("_last_updated_sequence_number", 2147483539): longs(2, None)}
    group.file(9, {("id", 1): longs(1, 2), **ids}, first_row_id=50)
    group.file(9, {("id", 1): longs(3)})
    assert sorted(rows_of(group.rewrite())) == [(1, 7, 2), (2, 51, 9), (3, None, None)]


def test_a_key_may_name_a_column_that_the_table_dropped(tmp_path: Path) -> None:
    group = Group(tmp_path, {ID: "long"})
    group.older = {8: column("code", 8, "int")}
    group.file(1, {("id", 1): longs(1, 2), ("code", 8): pa.array([10, 20], pa.int32())})
    group.file(1, {("id", 1): longs(3)})
    group.delete_keys(2, {("code", 8): pa.array([20, None], pa.int32())}, [0, 1])
    assert rows_of(group.rewrite()) == [(1,)]


def test_a_file_that_is_not_what_its_manifest_says_stops_its_group(tmp_path: Path) -> None:
    group = Group(tmp_path, {ID: "long"})
    path = group.file(1, {("id", 1): longs(1, 2)})
    pq.write_table(pa.table({"id": longs(1)}), path)
    assert group.rewrite()["error"] == f"{path} holds 1 rows, its manifest says 2"


def test_a_group_without_live_rows_leaves_no_file(tmp_path: Path) -> None:
    group = Group(tmp_path, {ID: "long"})
    path = group.file(1, {("id", 1): longs(1)})
    group.delete_positions(2, [(path, 0)], [0])
    assert group.rewrite() == {
        "group": 0,
        "outputs": [],
        "before": {"rows": 0, "deleted": 1, "nulls": {"1": 0}},
        "stretch": False,
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(data=st.data())
def test_what_is_left_is_what_a_model_says(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    group = Group(tmp_path_factory.mktemp("group"), {ID: "long", NAME: "string"})
    values = st.one_of(st.none(), st.integers(0, 4))
    texts = st.one_of(st.none(), st.sampled_from(["", "a", "ä'\""]))
    rows: list[dict[str, Any]] = []
    for place in range(data.draw(st.integers(1, 3))):
        age = data.draw(st.integers(1, 4))
        ids = data.draw(st.lists(values, min_size=1, max_size=5))
        names = data.draw(st.lists(texts, min_size=len(ids), max_size=len(ids)))
        path = group.file(age, {("id", 1): longs(*ids), ("name", 2): pa.array(names, pa.string())})
        rows += [
            {"file": place, "path": path, "pos": number, "age": age, "id": key, "name": name}
            for number, (key, name) in enumerate(zip(ids, names, strict=True))
        ]
    everywhere = range(len(group.data))
    for _ in range(data.draw(st.integers(0, 2))):
        gone = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=3)) if rows else []
        group.delete_positions(9, [(row["path"], row["pos"]) for row in gone], list(everywhere))
        rows = [row for row in rows if row not in gone]
    for _ in range(data.draw(st.integers(0, 2))):
        age, key, name = data.draw(st.integers(1, 5)), data.draw(values), data.draw(texts)
        both = data.draw(st.booleans())
        columns: dict[tuple[str, int | None], pa.Array] = {("id", 1): longs(key)}
        if both:
            columns[("name", 2)] = pa.array([name], pa.string())
        group.delete_keys(age, columns, list(everywhere))
        rows = [row for row in rows if row["age"] >= age or row["id"] != key or (both and row["name"] != name)]
    told = rows_of(group.rewrite())
    assert sorted(told, key=repr) == sorted(((row["id"], row["name"]) for row in rows), key=repr)
