"""What holds on a cluster: kernels come with the session, and an executor that dies costs no row and doubles none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import venv
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import relayout

# Long, for machines that do other things too.
PATIENCE_SECONDS = 600

LARGE_FILES = 12
ROWS_PER_LARGE_FILE = 20_000

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Loaded:
    """The tables after one `relayout apply` during which an executor was killed."""

    house: Path
    code: int
    receipt: Mapping[str, Any]
    messages: str
    driver_log: str

    def rows_in(self, table: str, *columns: str) -> Counter[tuple[Any, ...]]:
        """What a table holds in these columns, read without any of the processes that wrote it."""
        lake = relayout.open({"warehouse": str(self.house), "namespace": "db", "tables": {}})
        rows = lake.table(table).scan(selected_fields=columns).to_arrow().to_pylist()
        return Counter(tuple(row[name] for name in columns) for row in rows)


@pytest.fixture(scope="module")
def loaded(client: Any, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("loaded")
    (folder / "in").mkdir()
    house = folder / "house"
    process = client.start(house, declared(folder / "in"), "apply")
    kill_who_works(client, house, process)
    return Loaded(house, *answer(process), client.driver_log())


def declared(sources: Path) -> dict[str, Any]:
    """Sources and declarations of a table of each kind; the large one comes first."""
    for part in range(LARGE_FILES):
        numbers = range(part * ROWS_PER_LARGE_FILE, (part + 1) * ROWS_PER_LARGE_FILE)
        lines = (json.dumps({"id": number, "text": "x" * 80}) + "\n" for number in numbers)
        (sources / f"{part}_{part % 2}.json").write_text("".join(lines))
    (sources / "2021.csv").write_text("id,price\n1,2.50\n2,\n")
    pq.write_table(pa.table({"id": [1, 2, 3], "kind": ["x", "y", None]}), sources / "all.parquet")
    return {
        "as_json": {"source": str(sources / "{part}_{half}.json"), "partitions": {"keys": ["half"]}},
        "computed": {
            "source": str(sources / "{year}.csv"),
            "schema": {"id": "int", "price": "decimal(9,2)", "twice": "decimal(10,2)"},
            "columns": {"twice": "cast(price * 2 as decimal(10,2))"},
            "partitions": {"keys": ["year"]},
        },
        "as_parquet": {
            "source": str(sources / "*.parquet"),
            "partitions": {"keys": [{"name": "id", "transform": "bucket[2]"}]},
            "batch_partition_columns": ["kind"],
        },
    }


def kill_who_works(client: Any, house: Path, process: subprocess.Popen[bytes]) -> None:
    """Kill an executor as soon as tasks of the first table have begun."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not list(house.glob("db/as_json/data/.relayout-*/task-*")):
        assert process.poll() is None, answer(process)
        assert time.monotonic() < deadline, "no task began"
        time.sleep(0.005)
    os.kill(client.cluster.executors()[0], signal.SIGKILL)


def answer(process: subprocess.Popen[bytes]) -> tuple[int, dict[str, Any], str]:
    """Exit code, document and messages of a command; one that does not end is ended."""
    try:
        output, messages = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    return process.returncode, json.loads(output or b"{}"), messages.decode()


def test_an_executor_that_is_killed_while_it_loads_costs_no_row(loaded: Loaded) -> None:
    assert "Lost executor" in loaded.driver_log
    assert (loaded.code, loaded.receipt["done"]) == (0, 6), loaded.messages
    wanted = Counter((number,) for number in range(LARGE_FILES * ROWS_PER_LARGE_FILE))
    assert loaded.rows_in("as_json", "id") == wanted
    assert not list(loaded.house.glob("db/as_json/data/.relayout-*"))


def test_expressions_and_parquet_are_loaded_on_a_cluster(loaded: Loaded) -> None:
    rows = loaded.rows_in("computed", "id", "price", "twice", "year")
    assert rows == Counter([(1, Decimal("2.50"), Decimal("5.00"), 2021), (2, None, None, 2021)])
    assert loaded.rows_in("as_parquet", "id", "kind") == Counter([(1, "x"), (2, "y"), (3, None)])


@pytest.mark.usefixtures("loaded")
def test_executors_had_no_relayout_of_their_own(client: Any) -> None:
    found = subprocess.run([client.python, "-c", "import relayout"], env={}, capture_output=True, check=False)
    assert b"No module named 'relayout'" in found.stderr


def test_a_python_without_the_libraries_is_refused_by_name(client: Any, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    (tmp_path / "a.ndjson").write_text('{"id": 1}\n')
    bare = replace(client, python=str(tmp_path / "bare" / "bin" / "python"))
    tables = {"t": {"source": str(tmp_path / "*.ndjson")}}
    code, _, messages = answer(bare.start(tmp_path / "house", tables, "apply"))
    assert code == 2
    assert "executors cannot import duckdb, numpy, pandas, pyarrow, pyiceberg, pyroaring" in messages
    assert str(bare.python) in messages
    assert "Traceback" not in messages
