"""Files get to where the table keeps them by whole folders where that is possible, and never over others."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from relayout.kernels.places import place_for
from relayout.kernels.write import OutputFile, Target, TargetField, write_rows


def target_in(folder: Path) -> Target:
    (folder / "data" / ".scratch").mkdir(parents=True, exist_ok=True)
    return Target(
        data_location=str(folder / "data"),
        scratch=str(folder / "data" / ".scratch"),
        file_prefix="run",
        spec_id=0,
        fields=(TargetField("place", "place", "identity", "string"),),
        columns=(("place", "string"), ("kind", "int")),
        field_ids='{"place": 1, "kind": 2}',
        leaves=(),
        order_by=(),
        batch_columns=(("kind", "int"),),
        named_batch_columns=(),
        target_file_bytes=1 << 20,
        codec="zstd",
        store={},
    )


def written(folder: Path, rows: str) -> list[OutputFile]:
    with duckdb.connect() as connection:
        relation = f"(SELECT * FROM (VALUES {rows}) AS given(place, kind))"
        return write_rows(connection, relation, target_in(folder), {})


def found(folder: Path) -> dict[str, list[str]]:
    """Places that stand in the files of each partition folder; nothing else may be under the table's location."""
    told: dict[str, list[str]] = {}
    for path in sorted((folder / "data").rglob("*.parquet")):
        rows = duckdb.execute("SELECT place FROM read_parquet(?, hive_partitioning = false)", [str(path)]).fetchall()
        told.setdefault(path.parent.name, []).extend(row[0] for row in rows)
    return told


def test_files_of_many_partitions_and_of_two_loads_lie_where_they_are_said_to_be(tmp_path: Path) -> None:
    first = written(tmp_path, "('a/b', 1), ('c', 1)")
    second = written(tmp_path, "('c', 1), ('d e', 1)")
    assert found(tmp_path) == {"place=a%2Fb": ["a/b"], "place=c": ["c", "c"], "place=d+e": ["d e"]}
    told = {str(file.content["file-path"]) for file in (*first, *second)}
    assert told == {str(path) for path in tmp_path.rglob("*.parquet")}
    assert list((tmp_path / "data" / ".scratch").iterdir()) == []


def test_batches_of_one_partition_share_its_folder(tmp_path: Path) -> None:
    files = written(tmp_path, "('a', 1), ('a', 2)")
    assert [str(file.batch) for file in files] == ["{kind=1}", "{kind=2}"]
    assert found(tmp_path) == {"place=a": ["a", "a"]}


def test_a_value_too_long_for_a_folder_name_is_found_where_its_field_has_no_batch_column_beside_it(
    tmp_path: Path,
) -> None:
    target = replace(target_in(tmp_path), batch_columns=())
    with duckdb.connect() as connection:
        (file,) = write_rows(connection, f"(SELECT '{'x' * 300}' AS place, 1 AS kind)", target, {})
    assert file.content["partition"] == ["x" * 300]


def test_a_folder_gets_the_permissions_of_the_one_it_is_put_into(tmp_path: Path) -> None:
    target_in(tmp_path)
    (tmp_path / "data").chmod(0o2775)
    written(tmp_path, "('a', 1)")
    assert stat.S_IMODE(os.stat(tmp_path / "data" / "place=a").st_mode) == 0o2775


@pytest.mark.parametrize("held", [[], ["other"]])
def test_a_folder_is_never_put_over_files(tmp_path: Path, held: list[str]) -> None:
    for name in ("written/file", *(f"final/{name}" for name in held)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "final").mkdir(exist_ok=True)
    moved = place_for(str(tmp_path), {}).move_folder(str(tmp_path / "written"), f"file:{tmp_path / 'final'}")
    assert moved == (not held)
    assert sorted(os.listdir(tmp_path / "final")) == (held or ["file"])
