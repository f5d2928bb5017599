"""What holds on a cluster: kernels come with the session, whatever becomes of executors no row is lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import venv
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import relayout

# Long, for machines that do other things too.
PATIENCE_SECONDS = 600

pytestmark = pytest.mark.spark


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def answer(process: subprocess.Popen[bytes]) -> tuple[int, dict[str, Any], str]:
    """Exit code, document and messages of a command; one that does not end is ended."""
    try:
        output, messages = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    return process.returncode, json.loads(output or b"{}"), messages.decode()


def rows_in(house: Path, table: str, *columns: str) -> Counter[tuple[Any, ...]]:
    """What the table holds in these columns, read without any of the processes that wrote it."""
    lake = relayout.open({"warehouse": str(house), "namespace": "db", "tables": {}})
    rows = lake.table(table).scan(selected_fields=columns).to_arrow().to_pylist()
    return Counter(tuple(row[name] for name in columns) for row in rows)


def test_json_expressions_and_parquet_are_loaded_by_executors_that_do_not_have_relayout(
    client: Any, downloads: Path, tmp_path: Path
) -> None:
    for year in (2021, 2022):
        (downloads / f"{year}.json").write_text("".join(f'{{"id": {number}}}\n' for number in range(3)))
        (downloads / f"{year}.csv").write_text("id,price\n1,2.50\n2,\n")
    pq.write_table(pa.table({"id": [1, 2, 3], "kind": ["x", "y", None]}), downloads / "all.parquet")
    keys = {"keys": [{"name": "year", "type": "INTEGER"}]}
    tables = {
        "as_json": {"source": str(downloads / "{year}.json"), "partitions": keys},
        "computed": {
            "source": str(downloads / "{year}.csv"),
            "schema": {"id": "int", "price": "decimal(9,2)", "twice": "decimal(10,2)"},
            "columns": {"twice": "cast(price * 2 as decimal(10,2))"},
            "partitions": keys,
        },
        "as_parquet": {
            "source": str(downloads / "*.parquet"),
            "partitions": {"keys": [{"name": "id", "transform": "bucket[2]"}]},
            "batch_partition_columns": ["kind"],
        },
    }
    house = tmp_path / "house"
    code, receipt, messages = answer(client.start(house, tables, "apply"))
    assert (code, receipt["done"]) == (0, 7), messages
    assert rows_in(house, "as_json", "id", "year") == Counter(
        (number, year) for number in range(3) for year in (2021, 2022)
    )
    price, twice = Decimal("2.50"), Decimal("5.00")
    assert rows_in(house, "computed", "id", "price", "twice", "year") == Counter(
        row for year in (2021, 2022) for row in ((1, price, twice, year), (2, None, None, year))
    )
    assert rows_in(house, "as_parquet", "id", "kind") == Counter([(1, "x"), (2, "y"), (3, None)])
    # The Python of the executors has no relayout of its own to fall back on.
    alone = subprocess.run([client.python, "-c", "import relayout"], env={}, capture_output=True, check=False)
    assert b"ModuleNotFoundError" in alone.stderr


def test_an_executor_that_is_killed_while_it_loads_costs_no_row(client: Any, downloads: Path, tmp_path: Path) -> None:
    per_file = 40_000
    for part in range(12):
        lines = (json.dumps({"id": part * per_file + number, "text": "x" * 80}) + "\n" for number in range(per_file))
        (downloads / f"{part}_{part % 3}.json").write_text("".join(lines))
    tables = {"t": {"source": str(downloads / "{part}_{third}.json"), "partitions": {"keys": ["third"]}}}
    house = tmp_path / "house"
    process = client.start(house, tables, "apply")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not list(house.glob("db/t/data/.relayout-*/task-*")):
        assert process.poll() is None, answer(process)
        assert time.monotonic() < deadline, "no task began"
        time.sleep(0.005)
    # Whichever of them works on the task takes it along; the workers start new ones.
    for victim in client.cluster.executors():
        os.kill(victim, signal.SIGKILL)
    code, receipt, messages = answer(process)
    assert (code, receipt["done"]) == (0, 3), messages
    assert "Lost executor" in client.driver_log()
    assert rows_in(house, "t", "id") == Counter((number,) for number in range(12 * per_file))
    assert not list(house.glob("db/t/data/.relayout-*"))


def test_a_python_without_the_libraries_is_refused_by_name(client: Any, downloads: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    (downloads / "a.json").write_text('{"id": 1}\n')
    bare = replace(client, python=str(tmp_path / "bare" / "bin" / "python"))
    tables = {"t": {"source": str(downloads / "*.json")}}
    code, _, messages = answer(bare.start(tmp_path / "house", tables, "apply"))
    assert code == 2
    assert "executors cannot import duckdb, numpy, pandas, pyarrow, pyiceberg, pyroaring" in messages
    assert str(bare.python) in messages
    assert "Traceback" not in messages
