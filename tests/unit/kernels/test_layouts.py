"""One pass, several layouts: each target gets the same rows, and one that fails harms nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from relayout.kernels.metrics import Leaf
from relayout.kernels.order import Curve
from relayout.kernels.write import OutputFile, Target, TargetField, write_layouts
from relayout.table.batches import BatchKey
from relayout.table.duckdb_text import SESSION_SETTINGS

COLUMNS = (("year", "int"), ("geo", "string"), ("value", "double"))
ROWS = [(2020 + n % 2, f"g{n % 5}" if n % 7 else None, n / 4) for n in range(200)]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        for setting in ("SET threads = 1", *SESSION_SETTINGS):
            opened.execute(setting)
        opened.execute("CREATE TABLE source (year INTEGER, geo VARCHAR, value DOUBLE)")
        opened.executemany("INSERT INTO source VALUES (?, ?, ?)", ROWS)
        yield opened


@pytest.fixture
def base(tmp_path: Path) -> Target:
    return Target(
        data_location=str(tmp_path / "base"),
        scratch=str(tmp_path / "scratch"),
        file_prefix="run",
        spec_id=0,
        fields=(TargetField("year", "year", "identity", "int"),),
        columns=COLUMNS,
        field_ids="{" + ", ".join(f'"{name}": {number}' for number, (name, _) in enumerate(COLUMNS, 1)) + "}",
        leaves=tuple(Leaf(f'"{name}"', number, kind) for number, (name, kind) in enumerate(COLUMNS, 1)),
        order_by=(),
        batch_columns=(("year", "int"),),
        named_batch_columns=(),
        target_file_bytes=1 << 29,
        codec="zstd",
        store={},
    )


def rows_of(connection: duckdb.DuckDBPyConnection, files: list[OutputFile]) -> list[tuple[object, ...]]:
    """Rows file by file, in the order in which they lie there."""
    paths = [str(file.content["file-path"]) for file in files]
    return [
        row
        for path in paths
        for row in connection.execute("SELECT * FROM read_parquet(?, hive_partitioning = false)", [path]).fetchall()
    ]


def test_every_layout_holds_the_same_rows_batch_by_batch(
    connection: duckdb.DuckDBPyConnection, base: Target, tmp_path: Path
) -> None:
    by_geo = replace(
        base,
        data_location=str(tmp_path / "by_geo"),
        fields=(TargetField("geo_bucket", "geo", "bucket[3]", "string"),),
        order_by=('"geo" ASC NULLS FIRST',),
    )
    near = replace(
        base,
        data_location=str(tmp_path / "near"),
        fields=(),
        curve=Curve("hilbert", (("geo", "VARCHAR"), ("value", "DOUBLE"))),
    )
    for first, others in ((base, (by_geo, near)), (near, (base, by_geo))):
        layouts = write_layouts(connection, "source", first, {}, others)
        assert len(layouts.seconds) == 2
        for files in (layouts.files, *layouts.others):
            assert not isinstance(files, str)
            assert sorted(rows_of(connection, files), key=repr) == sorted(ROWS, key=repr)
            for file in files:
                (year,) = {row[0] for row in rows_of(connection, [file])}
                assert file.batch == BatchKey((("year", year),))


def test_a_layout_that_fails_harms_no_other(
    connection: duckdb.DuckDBPyConnection, base: Target, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder", "utf-8")
    broken = replace(base, data_location=str(tmp_path / "file" / "data"))
    sound = replace(base, data_location=str(tmp_path / "sound"), fields=())
    layouts = write_layouts(connection, "source", base, {}, (broken, sound))
    failed, written = layouts.others
    assert isinstance(failed, str)
    assert "file" in failed
    assert not isinstance(written, str)
    assert sorted(rows_of(connection, written), key=repr) == sorted(ROWS, key=repr)
    assert sorted(rows_of(connection, layouts.files), key=repr) == sorted(ROWS, key=repr)


def test_no_rows_make_no_files(connection: duckdb.DuckDBPyConnection, base: Target) -> None:
    connection.execute("DELETE FROM source")
    layouts = write_layouts(connection, "source", base, {}, (replace(base, fields=()),))
    assert (layouts.files, layouts.others) == ([], [[]])
