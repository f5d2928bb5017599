"""The same rows from every format, laid out by every transform as Spark and Iceberg themselves would."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.types import LongType, StringType

from relayout.api import Lake

pytestmark = pytest.mark.spark

LakeOf = Callable[..., Lake]
Rows = Callable[[Lake, str], list[tuple[Any, ...]]]

RECORDS = [{"code": f"0100{number}", "n": number, "x": number / 4, "day": "2024-02-29"} for number in range(6)]
AS_TEXT = "".join(json.dumps(row) + "\n" for row in RECORDS)


def test_every_format_and_compression_gives_the_same_rows(lake_of: LakeOf, rows_in: Rows, tmp_path: Path) -> None:
    array = json.dumps(RECORDS)
    table = "code,n,x,day\n" + "".join(",".join(str(value) for value in row.values()) + "\n" for row in RECORDS)
    texts = {"lines.ndjson": AS_TEXT, "array.json": array, "table.csv": table, "tabs.tsv": table.replace(",", "\t")}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        (tmp_path / f"{name}.zst").write_bytes(pa.Codec("zstd").compress(text.encode(), asbytes=True))
    pq.write_table(pa.Table.from_pylist(RECORDS), tmp_path / "rows.parquet")
    names = [*(f"{name}{ending}" for name in texts for ending in ("", ".gz", ".zst")), "rows.parquet"]
    lake = lake_of({f"t{number}": {"source": str(tmp_path / name)} for number, name in enumerate(names)})
    plan = lake.plan()
    # Codes stay text, and nobody guesses dates.
    expected_schema = (("code", "string"), ("n", "long"), ("x", "double"), ("day", "string"))
    assert {table.schema for table in plan.tables} == {expected_schema}
    assert lake.apply().complete
    for number in range(len(names)):
        assert rows_in(lake, f"t{number}") == [tuple(row.values()) for row in RECORDS], names[number]


def test_transforms_agree_with_icebergs_own_functions(lake_of: LakeOf, tmp_path: Path) -> None:
    texts = ("1969-12-31T23:59:59.999999+00:00", "1970-01-01T00:00:00+00:00", "2024-02-29T13:05:00+00:00")
    moments = [*map(datetime.fromisoformat, texts), None]
    columns: dict[str, tuple[str, pa.DataType, list[Any]]] = {
        "i": ("int", pa.int32(), [-7, 0, 2147483647, None]),
        "l": ("long", pa.int64(), [-(1 << 63), -1, 34, None]),
        "s": ("string", pa.string(), ["", "\U0001f600bcdef", "iceberg", None]),
        "b": ("binary", pa.binary(), [b"", b"\x00\xff\x01", b"iceberg", None]),
        "d": ("decimal(9,2)", pa.decimal128(9, 2), [Decimal("-10.65"), Decimal("0.00"), Decimal("14.20"), None]),
        "day": ("date", pa.date32(), [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), None]),
        "at": ("timestamp", pa.timestamp("us"), [m and m.replace(tzinfo=None) for m in moments]),
        "zoned": ("timestamptz", pa.timestamp("us", "UTC"), moments),
    }
    rows = {name: pa.array(values, kind) for name, (_, kind, values) in columns.items()}
    pq.write_table(pa.table({"id": range(4), **rows}), tmp_path / "rows.parquet")
    wanted = [(name, f"bucket[{5}]", f"bucket(5, {name})") for name in columns]
    wanted += [(name, f"truncate[{3}]", f"truncate(3, {name})") for name in ("i", "l", "s", "b", "d")]
    times = {
        "day": ("year", "month", "day"),
        "at": ("year", "month", "day", "hour"),
        "zoned": ("hour", "year", "month", "day"),
    }
    wanted += [(name, unit, f"{unit}s({name})") for name, units in times.items() for unit in units]
    wanted += [(name, "identity", name) for name in columns]
    tables = {
        f"t{number}": {
            "source": str(tmp_path / "rows.parquet"),
            "schema": {name: kind for name, (kind, _, _) in columns.items()},
            "partitions": {"keys": [{"name": name, "transform": transform}]},
        }
        for number, (name, transform, _) in enumerate(wanted)
    }
    lake = lake_of(tables)
    assert lake.apply().complete
    for number, (name, transform, function) in enumerate(wanted):
        own = function if function == name else f"lake.system.{function}"
        found = lake.sql(f"SELECT _partition, {own} AS value FROM t{number}").collect()
        assert len(found) == 4
        assert [tuple(row[0]) for row in found] == [(row[1],) for row in found], (name, transform)
        assert lake.table(f"t{number}").scan().to_arrow().num_rows == 4


def test_files_carry_field_ids_true_metrics_and_their_batch_in_the_name(lake_of: LakeOf, tmp_path: Path) -> None:
    for year in (2020, 2021):
        lines = [{"name": f"{year}-{number}" if number else None, "n": number} for number in range(3)]
        (tmp_path / f"a_{year}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = str(tmp_path / "*_{year}.json")
    constants = {"origin": "'sample'", "twice": "n * 2"}
    lake = lake_of(
        {
            "t": {"source": source, "schema": {"year": "int"}, "batch_partition_columns": ["year"]},
            "mapped": {
                "source": source,
                "columns": constants,
                "partitions": {"keys": ["origin"]},
                "batch_partition_columns": ["year"],
            },
        }
    )
    assert lake.apply().complete
    table = lake.table("t")
    ids = {field.name: field.field_id for field in table.schema().fields}
    files = sorted((task.file for task in table.scan().plan_files()), key=lambda file: file.file_path)
    assert [Path(file.file_path).name.split("_")[:2] for file in files] == [["year", "2020"], ["year", "2021"]]
    for year, file in zip((2020, 2021), files, strict=True):
        stored = pq.ParquetFile(file.file_path.removeprefix("file:"))
        assert {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in stored.schema_arrow} == ids
        assert (file.record_count, stored.metadata.num_rows) == (3, 3)
        assert file.file_size_in_bytes == Path(file.file_path.removeprefix("file:")).stat().st_size
        assert file.value_counts == {ids["name"]: 3, ids["n"]: 3, ids["year"]: 3}
        assert file.null_value_counts == {ids["name"]: 1, ids["n"]: 0, ids["year"]: 0}
        assert from_bytes(LongType(), file.lower_bounds[ids["n"]]) == 0
        assert from_bytes(LongType(), file.upper_bounds[ids["n"]]) == 2
        assert from_bytes(StringType(), file.lower_bounds[ids["name"]]) == f"{year}-1"
        assert from_bytes(StringType(), file.upper_bounds[ids["name"]]) == f"{year}-2"
    mapped = lake.table("mapped").scan().to_arrow().to_pylist()
    assert {(row["n"], row["origin"], row["twice"]) for row in mapped} == {(n, "sample", 2 * n) for n in range(3)}
    assert {Path(task.file.file_path).parent.name for task in lake.table("mapped").scan().plan_files()} == {
        "origin=sample"
    }
