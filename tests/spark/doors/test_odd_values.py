"""Names and values that look like syntax, like paths, like nothing: they come back as they were, where they belong."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.expressions import EqualTo, IsNull

from relayout.api import Lake
from relayout.commit.receipts import Outcome

pytestmark = pytest.mark.spark

LakeOf = Callable[..., Lake]
Rows = Callable[[Lake, str], list[tuple[Any, ...]]]

VALUES: list[str | None] = [
    None,
    *("", " ", "a b", "a.b", "'", '"', "`", "a/b", "/", "..", ".", "../../../../tmp/out", "%2F", "100%", "%", "+", "~"),
    *("\u00e9", "e\u0301", "\n", "\r\n", "\t", "\0", "a\0b", "\x7f", "\u2028", "\u200b", "\U0001f600", "\uffff"),
    *(
        "null",
        "NULL",
        "None",
        "nan",
        "__HIVE_DEFAULT_PARTITION__",
        "v=1",
        "=",
        "?*[x]",
        "\\",
        "\\'",
        "$x",
        "${spark.master}",
    ),
    *(
        "{all}",
        "; DROP TABLE t",
        "-- x",
        ".hidden",
        "_hidden",
        "x" * 300,
        "x" * 299 + "y",
        "\u00e9" * 200,
        "v" + "a" * 60,
    ),
    "h" + "0" * 32,
]
NAMES = [
    *(
        "a b",
        "a.b",
        "a'b",
        'a"b',
        "a`b",
        "a/b",
        "a\\b",
        "a%b",
        "a=b",
        "a\nb",
        "\u00e9",
        "select",
        "1",
        "$x",
        "${x}",
        "a;b",
    ),
    *("__relayout_p0", "relayout_file", "filename", "held", "\u4e2d\u6587", "x" * 200),
]


def partitions_of(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    """The partition tuple and the rows of each file, as manifests tell them."""
    tasks = lake.table(table).scan().plan_files()
    return [(tuple(task.file.partition[i] for i in range(len(task.file.partition))), task.file) for task in tasks]


def everything_under(folder: Path) -> set[str]:
    return {os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}


def test_every_text_comes_back_and_lies_in_its_own_partition_and_batch(
    lake_of: LakeOf, rows_in: Rows, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_text("".join(json.dumps({"id": i, "v": v}) + "\n" for i, v in enumerate(VALUES)))
    source = str(folder / "*.json")
    in_path = {"source": source, "partitions": {"keys": ["v"]}, "batch_partition_columns": ["v"]}
    tables = {
        "in_path": in_path,
        "in_name": {"source": source, "batch_partition_columns": ["v"]},
        "cut": {
            "source": source,
            "partitions": {
                "keys": [{"name": "v", "transform": "truncate[3]"}, {"name": "id", "transform": "bucket[4]"}]
            },
        },
    }
    lake = lake_of(tables)
    outside = everything_under(tmp_path) - everything_under(tmp_path / "lake")
    receipt = lake.apply()
    assert receipt.complete, [
        (table.table, table.error, table.bad_files, [b.note for b in table.batches if b.note])
        for table in receipt.tables
    ]
    assert everything_under(tmp_path) - everything_under(tmp_path / "lake") == outside
    expected = sorted(enumerate(VALUES), key=repr)
    for table in tables:
        assert rows_in(lake, table) == expected
        assert sorted(((row[0], row[1]) for row in lake.sql(f"SELECT * FROM {table}").collect()), key=repr) == expected
        native = lake.table(table)
        for file in native.scan().plan_files():
            path = Path(file.file.file_path.removeprefix("file:"))
            assert path.resolve().is_relative_to(Path(native.location().removeprefix("file:")).resolve() / "data")
            assert len(path.name.encode()) <= 255
        for number, value in enumerate(VALUES):
            found = native.scan(IsNull("v") if value is None else EqualTo("v", value)).to_arrow()
            assert found.column("id").to_pylist() == [number], repr(value)
    assert sorted(
        (partition[0], file.record_count)
        for partition, file in partitions_of(lake, "in_path")
        if partition[0] is not None
    ) == sorted((value, 1) for value in VALUES if value is not None)
    cut = {partition[0] for partition, _ in partitions_of(lake, "cut")}
    assert cut == {value if value is None else value[:3] for value in VALUES}
    told = {row[0] for row in lake.sql("SELECT partition.v FROM db.in_path.partitions").collect()}
    assert told == set(VALUES)

    # One value changes: its batch goes, another one comes, no other is touched.
    changed = ["other" if value == "a/b" else value for value in VALUES]
    (folder / "a.json").write_text("".join(json.dumps({"id": i, "v": v}) + "\n" for i, v in enumerate(changed)))
    assert lake.apply(tables=["in_path"]).complete
    assert rows_in(lake, "in_path") == sorted(enumerate(changed), key=repr)
    assert not lake.plan(["in_path"]).has_work


@settings(max_examples=2, suppress_health_check=list(HealthCheck), deadline=None, derandomize=True)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=90), min_size=40, max_size=60, unique=True),
)
def test_any_texts_come_back(lake_of: LakeOf, tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "a.json").write_text("".join(json.dumps({"id": i, "v": v}) + "\n" for i, v in enumerate(values)))
    tables = {"t": {"source": str(folder / "*.json"), "partitions": {"keys": ["v"]}, "batch_partition_columns": ["v"]}}
    lake = lake_of(tables, folder.name)
    assert lake.apply().complete
    assert sorted((r["id"], r["v"]) for r in lake.table("t").scan().to_arrow().to_pylist()) == list(enumerate(values))
    assert {partition[0]: file.record_count for partition, file in partitions_of(lake, "t")} == dict.fromkeys(values, 1)


def test_values_in_folder_names_come_back_decoded(lake_of: LakeOf, rows_in: Rows, tmp_path: Path) -> None:
    told = [
        value for value in VALUES if value != "__HIVE_DEFAULT_PARTITION__" and len(quote(value or "", safe="")) < 250
    ]
    for number, value in enumerate(told):
        name = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe="")
        file = tmp_path / "in" / f"v={name}" / "a.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"id": number}))
    # The same as Spark writes it, and a name that nobody encoded.
    plain = tmp_path / "plain"
    for number, value in enumerate(("a b", "\u00e9", "e\u0301", "a'b", 'a"b', "a=b", "a\nb", "a\\b", "a[b]", "a*b?")):
        (plain / f"v={value}").mkdir(parents=True)
        (plain / f"v={value}" / f"f{value}.csv").write_text(f"id\n{number}\n")
    tables = {
        "t": {"source": str(tmp_path / "in/v=*/*.json"), "partitions": {"keys": ["v"]}},
        "plain": {
            "source": str(plain / "v=*/*.csv"),
            "partitions": {"keys": [{"name": "v", "transform": "truncate[1]"}]},
        },
    }
    lake = lake_of(tables)
    receipt = lake.apply()
    table = next(each for each in receipt.tables if each.table == "plain")
    assert [file for file in table.bad_files if "backslash" not in file[1]] == []
    assert rows_in(lake, "t") == sorted(enumerate(told), key=repr)
    assert {row[1] for row in rows_in(lake, "plain")} >= {
        "a b",
        "\u00e9",
        "e\u0301",
        "a'b",
        'a"b',
        "a=b",
        "a\nb",
        "a[b]",
        "a*b?",
    }
    assert not lake.plan(["t"]).has_work


def test_columns_of_any_name_hold_what_they_held(lake_of: LakeOf, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rows = [{name: f"{i}{name}" for name in NAMES} | {"id": i} for i in range(3)]
    (folder / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    with (folder / "a.csv").open("w", newline="") as file:
        import csv

        writer = csv.DictWriter(file, [*NAMES, "id"])
        writer.writeheader()
        writer.writerows(rows)
    tables: dict[str, Any] = {
        kind: {"source": str(folder / f"*.{kind}"), "sort": [NAMES[0]]} for kind in ("json", "parquet", "csv")
    }
    for number, name in enumerate(NAMES):
        tables[f"by{number}"] = {
            "source": str(folder / "*.json"),
            "partitions": {"keys": [name]},
            "batch_partition_columns": [name],
        }
    tables["mapped"] = {"source": str(folder / "*.json"), "columns": {"a b": "concat(`a'b`, '!')", "new col": "'x'"}}
    lake = lake_of(tables)
    receipt = lake.apply()
    assert {
        table.table: table.error or [batch.note for batch in table.batches if batch.note]
        for table in receipt.tables
        if table.error or any(batch.note for batch in table.batches)
    } == {}
    expected = [tuple(row[name] for name in (*NAMES, "id")) for row in rows]
    for table in tables:
        if table == "mapped":
            continue
        native = lake.table(table)
        order = [field.name for field in native.schema().fields]
        assert sorted(order) == sorted([*NAMES, "id"])
        got = native.scan().to_arrow().to_pylist()
        assert sorted(tuple(row[name] for name in (*NAMES, "id")) for row in got) == expected
        spark_rows = lake.sql(f"SELECT * FROM {table}").collect()
        assert sorted(tuple(row[order.index(name)] for name in (*NAMES, "id")) for row in spark_rows) == expected
    mapped = lake.table("mapped").scan().to_arrow().to_pylist()
    assert sorted(row["a b"] for row in mapped) == [f"{i}a'b!" for i in range(3)]
    assert not lake.plan().has_work


TABLES = [
    "my table",
    "it's",
    'say "x"',
    "100%",
    "\u00e9",
    "e\u0301",
    "a.b",
    "semi;colon",
    "a=b",
    "x[1]",
    "q?",
    "h#",
    "co:lon",
    "back`tick",
    "a+b",
]


def test_tables_of_any_name_are_made_read_and_found_again(
    lake_of: LakeOf, relayout: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "in dir's % \u00e9"
    folder.mkdir()
    (folder / "a 'b'.json").write_text('{"id": 1}\n')
    lake = lake_of({name: {"source": str(folder / "*.json")} for name in TABLES})
    said = relayout("apply", "--json")
    assert {t["table"]: t["error"] for t in said.document["tables"] if t["error"]} == {}
    assert said.code == 0
    for name in TABLES:
        quoted = "`" + name.replace("`", "``") + "`"
        assert relayout("sql", f"SELECT id FROM {quoted}", "--json").document["rows"] == [[1]]
        assert lake.table(quoted).scan().to_arrow().num_rows == 1
        assert relayout("status", quoted).code == 0
    assert relayout("plan").code == 0


def test_numbers_that_are_none_or_have_two_zeros_find_their_partition(
    lake_of: LakeOf, rows_in: Rows, tmp_path: Path
) -> None:
    numbers = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, None]
    (tmp_path / "in").mkdir()
    data = pa.table({"id": range(len(numbers)), "d": pa.array(numbers, pa.float64())})
    pq.write_table(data, tmp_path / "in" / "a.parquet")
    source = str(tmp_path / "in" / "*.parquet")
    lake = lake_of(
        {
            "by": {"source": source, "partitions": {"keys": ["d"]}, "batch_partition_columns": ["d"]},
            "not_by": {"source": source},
        }
    )
    receipt = lake.apply()
    assert receipt.complete
    assert receipt.count(Outcome.DONE) == 7
    for table in ("by", "not_by"):
        assert [(row[0], repr(row[1]).replace("-0.0", "0.0")) for row in sorted(rows_in(lake, table))] == [
            (number, repr(value).replace("-0.0", "0.0")) for number, value in enumerate(numbers)
        ]
        found = lake.sql(f"SELECT id FROM {table} WHERE d = double('NaN') OR d = 0 OR d > 1 ORDER BY id").collect()
        assert [row[0] for row in found] == [0, 1, 3, 4, 5]
    assert not lake.plan().has_work

    pq.write_table(data.set_column(0, "id", pa.array(range(10, 17))), tmp_path / "in" / "a.parquet")
    assert lake.apply().complete
    for table in ("by", "not_by"):
        assert sorted(row[0] for row in rows_in(lake, table)) == list(range(10, 17))
