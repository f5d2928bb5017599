"""Sources that are not what they should be: each is named with its reason, everything else is loaded."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relayout.api import Lake

pytestmark = pytest.mark.spark

LakeOf = Callable[..., Lake]
Rows = Callable[[Lake, str], list[tuple[Any, ...]]]

LINE = '{"id": 1, "name": "a"}\n'
YEARLY: dict[str, Any] = {"schema": {"id": "long"}, "partitions": {"keys": [{"name": "year", "type": "int"}]}}


def write(folder: Path, **files: bytes | str) -> dict[str, str]:
    """Files of which the names are given with `__` for the dot; their paths by the year in them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data if isinstance(data, bytes) else data.encode())
    return {name.split("_")[1]: str(folder / name.replace("__", ".")) for name in files}


def test_bad_files_are_named_and_the_other_batches_are_loaded(
    lake_of: LakeOf, relayout: Callable[..., Any], rows_in: Rows, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    packed = gzip.compress(LINE.encode() * 5000)
    at = write(
        folder,
        good_2001__json=LINE,
        array_2002__json=json.dumps([{"id": 2, "name": "b"}, {"id": 3, "name": "c"}]),
        torn_2003__json__gz=packed[: len(packed) // 2],
        zero_2004__json="",
        cut_2005__json=LINE + '{"id": 2, "na',
        scalar_2006__json="1\n",
        text_2007__json='{"id": "abc", "name": "x"}\n',
        struct_2008__json='{"id": {"a": 1}, "name": "x"}\n',
        told_2009__json='{"id": 1, "name": "a", "year": 2010}\n',
        spelled_2010__json='{"id": 1, "Name": "a"}\n',
        deep_2011__json='{"id": 1, "name": ' + "[" * 200 + "]" * 200 + "}\n",
    )
    os.mkfifo(folder / "pipe_2012.json")
    (folder / "link_2013.json").symlink_to("nowhere")
    (folder / "null_2014.json").symlink_to("/dev/null")
    (folder / "year_none.json").write_text(LINE)
    lake = lake_of({"t": {**YEARLY, "source": str(folder / "*_{year}.json*")}})

    reasons = {
        "2003": "torn gzip: the file ends before its data does",
        "2004": "empty file",
        "2005": "line 2: cut JSON (Unterminated string starting at, at character 11)",
        "2006": "it holds values that are not objects: one object per line, or one array of them",
        "2008": "column 'id' is struct<a: long>, the table has long",
        "2009": "its path says that year is 2009, its content says 2010",
        "2010": "column 'Name' differs from 'name' in case only; spell it in one way",
        "2011": "JSON that is nested more than 128 deep",
    }
    unlisted = {
        str(folder / "pipe_2012.json"): "a pipe, not a file",
        str(folder / "link_2013.json"): "a link to nothing",
        str(folder / "null_2014.json"): "a device, not a file",
        str(folder / "year_none.json"): "no part of its path has the type of year",
    }
    planned = relayout("plan", "--json")
    assert planned.code == 1
    (table,) = planned.document["tables"]
    assert {str(batch["key"]["year"]): batch["blocked"] for batch in table["batches"]} == {
        **dict.fromkeys(("2001", "2002", "2007"), ""),
        **{year: f"{at[year]}: {reason}" for year, reason in reasons.items()},
    }
    bad = {**unlisted, **{at[year]: reason for year, reason in reasons.items()}}
    assert {file["path"]: file["reason"] for file in table["bad_files"]} == bad

    applied = relayout("apply", "--json")
    assert applied.code == 1
    (table,) = applied.document["tables"]
    fates = {str(batch["key"]["year"]): (batch["outcome"], batch["note"]) for batch in table["batches"]}
    assert fates == {
        "2001": ("done", ""),
        "2002": ("done", ""),
        "2007": ("failed", f'{at["2007"]}: line 1: Failed to cast value to numerical: "abc"'),
        **{year: ("failed", f"{at[year]}: {reason}") for year, reason in reasons.items()},
    }
    assert {file["path"]: file["reason"] for file in table["bad_files"]} == bad
    assert rows_in(lake, "t") == [(1, "a", 2001), (2, "b", 2002), (3, "c", 2002)]

    # Each file by itself can be mended or taken away; `retry` takes up what failed.
    for year in reasons:
        Path(at[year]).unlink()
        Path(at[year].removesuffix(".gz")).write_text(LINE)
    for path in unlisted:
        Path(path).unlink()
    half = relayout("retry")
    assert half.code == 1
    assert f'{{year=2007}}: {at["2007"]}: line 1: Failed to cast value to numerical: "abc"' in " ".join(
        half.out.split()
    )
    Path(at["2007"]).write_text(LINE)
    assert relayout("retry").code == 0
    assert relayout("plan").code == 0
    assert len(rows_in(lake, "t")) == 12


def test_a_bad_file_that_belongs_to_no_known_batch_is_a_finding_until_it_is_gone(
    lake_of: LakeOf, relayout: Callable[..., Any], rows_in: Rows, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    at = write(folder, a_1__json='{"id": 1, "kind": "x"}\n', b_2__json='{"id": 2, "ki')
    lake = lake_of({"t": {"source": str(folder / "*.json"), "batch_partition_columns": ["kind"]}})
    assert relayout("apply").code == 1
    assert rows_in(lake, "t") == [(1, "x")]
    for verb in ("plan", "apply", "plan"):
        said = relayout(verb)
        assert said.code == 1
        assert f"{at['2']}: line 1: cut JSON" in " ".join(said.out.split())
    Path(at["2"]).unlink()
    assert (relayout("plan").code, relayout("apply").code) == (0, 0)


def test_files_of_other_shapes_stop_their_batch_alone(
    lake_of: LakeOf, relayout: Callable[..., Any], rows_in: Rows, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def parquet(file: str, **columns: Any) -> str:
        pq.write_table(pa.table(columns), folder / file)
        return str(folder / file)

    parquet("a_2001.parquet", id=[1], name=["a"])
    lake = lake_of({"t": {"source": str(folder / "*_{year}.parquet"), "partitions": {"keys": ["year"]}}})
    assert relayout("apply").code == 0
    # Added, wider, missing and incompatible columns, and a file that ends too early.
    parquet("b_2002.parquet", id=[2], name=["b"], more=[1.5])
    parquet("c_2003.parquet", id=[3])
    other = parquet("d_2004.parquet", id=["four"], name=["d"])
    cut = parquet("e_2005.parquet", id=[5], name=["e"])
    Path(cut).write_bytes(Path(cut).read_bytes()[:-10])
    said = relayout("apply", "--json")
    assert said.code == 1
    fates = {batch["key"]["year"]: (batch["outcome"], batch["note"]) for batch in said.document["tables"][0]["batches"]}
    assert fates[2002] == fates[2003] == ("done", "")
    assert fates[2004] == ("failed", f"{other}: column 'id' is string, the table has long")
    assert fates[2005][0] == "failed"
    assert fates[2005][1].startswith(f"{cut}: not a whole Parquet file")
    assert rows_in(lake, "t") == [(1, "a", 2001, None), (2, "b", 2002, 1.5), (3, None, 2003, None)]

    Path(other).unlink()
    Path(cut).unlink()
    parquet("f_2006.parquet", more=[2.5])
    kept = parquet("g_2007.parquet", id=[7], _file=["mine"])
    said = relayout("apply", "--json")
    fates = {batch["key"]["year"]: (batch["outcome"], batch["note"]) for batch in said.document["tables"][0]["batches"]}
    reserved = f"{kept}: column '_file' has a name that Iceberg keeps for itself; rename it"
    assert fates == {2006: ("done", ""), 2007: ("failed", reserved)}
    assert (None, None, 2006, 2.5) in rows_in(lake, "t")


def test_one_table_that_cannot_be_planned_does_not_hold_up_the_others_and_is_an_error(
    lake_of: LakeOf, relayout: Callable[..., Any], rows_in: Rows, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    write(folder, a_1__json=LINE)
    lake = lake_of(
        {"good": {"source": str(folder / "*.json")}, "unmounted": {"source": str(tmp_path / "disk" / "*.json")}}
    )
    for verb in ("plan", "apply", "plan", "apply"):
        said = relayout(verb)
        assert said.code == 2
        assert "the source of unmounted lists no file at all" in said.out
    assert rows_in(lake, "good") == [(1, "a")]
    assert relayout("plan", "good").code == 0
    alone = relayout("plan", "unmounted", "--json")
    assert (alone.code, alone.document["error"], alone.document["where"]) == (
        2,
        "SourceError",
        f"{tmp_path}/disk/*.json",
    )
