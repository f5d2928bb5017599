"""Every way in which a source file can be bad is told in plain words, and hides no other file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relayout.read.scanning import scan
from relayout.table.sources import FileContent, SourceFile

Scan = Callable[..., dict[str, FileContent]]

LINES = "".join(json.dumps({"id": number, "name": f"n{number}"}) + "\n" for number in range(5000)).encode()
ARRAY = json.dumps([{"id": number, "name": f"n{number}"} for number in range(5000)]).encode()
TABLE = ("id,name\n" + "".join(f"{number},n{number}\n" for number in range(5000))).encode()
GOOD = (("id", "long"), ("name", "string"))


def zstandard(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def source(path: Path) -> SourceFile:
    facts = path.stat()
    return SourceFile(str(path), facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


@pytest.fixture
def scanned(tmp_path: Path) -> Scan:
    """Contents by file name, of all these files read together."""

    def run(format: str, files: dict[str, bytes]) -> dict[str, FileContent]:
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        listed = [source(tmp_path / name) for name in files]
        found = scan(listed, format, (), {}, memory_limit_bytes=1 << 28, threads=2)
        return {Path(content.path).name: content for content in found}

    return run


def test_the_same_rows_are_found_plain_compressed_and_as_arrays(scanned: Scan) -> None:
    found = scanned(
        "json",
        {
            "lines.json": LINES,
            "lines.json.gz": gzip.compress(LINES),
            "lines.json.zst": zstandard(LINES),
            "members.json.gz": gzip.compress(LINES[:10_000]) + gzip.compress(LINES[10_000:]),
            "array.json": ARRAY,
            "array.json.gz": gzip.compress(ARRAY),
            "array.json.zst": zstandard(ARRAY),
            "mark.json": b"\xef\xbb\xbf" + LINES,
            "spread.json": b"".join(
                b"\n" + json.dumps(json.loads(line), indent=1).encode() for line in LINES.splitlines()
            ),
            "empty_array.json": b"[]",
            "blank.json": b"\n\n",
        },
    )
    assert {name: (content.problem, content.rows) for name, content in found.items()} == {
        **dict.fromkeys(found, ("", 5000)),
        "empty_array.json": ("", 0),
        "blank.json": ("", 0),
    }
    assert {content.columns for content in found.values() if content.rows} == {GOOD}
    tables = scanned("csv", {"t.csv": TABLE, "t.csv.gz": gzip.compress(TABLE), "t.csv.zst": zstandard(TABLE)})
    assert {(content.problem, content.rows, content.columns) for content in tables.values()} == {("", 5000, GOOD)}


def test_each_bad_json_file_is_told_apart_from_the_good_ones(scanned: Scan) -> None:
    whole, packed = gzip.compress(LINES), zstandard(LINES)
    torn_gzip, torn_zst = (
        "torn gzip: the file ends before its data does",
        "torn zst: the file ends before its data does",
    )
    no_objects = "it holds values that are not objects: one object per line, or one array of them"
    bad = {
        "zero.json": (b"", "empty file"),
        "zero.json.gz": (gzip.compress(b""), "empty file"),
        "torn.json.gz": (whole[: len(whole) // 2], torn_gzip),
        "tail.json.gz": (whole[:-4], torn_gzip),
        "second.json.gz": (whole + whole[:100], torn_gzip),
        "sum.json.gz": (whole[:-8] + bytes(8), "damaged gzip data: zlib inflate failed: incorrect data check"),
        "plain.json.gz": (LINES, "not gzip data, though its name says so"),
        "torn.json.zst": (packed[: len(packed) // 2], torn_zst),
        "cut.json": (LINES[:-5], "line 5000: cut JSON (Unterminated string starting at, at character 22)"),
        "cut_array.json": (ARRAY[:-9], "cut JSON array: the closing ] is missing"),
        "comma.json": (ARRAY[: ARRAY.rindex(b", {") + 1], "cut JSON array: the closing ] is missing"),
        "cut_array.json.gz": (gzip.compress(ARRAY[:-9]), "cut JSON array: the closing ] is missing"),
        "commas.json": (b'{"id": 1},\n{"id": 2}\n', "line 1: malformed JSON (Extra data, at character 10)"),
        "latin.json": ('{"name": "é"}\n'.encode("latin-1"), "line 1: not UTF-8 text"),
        "numbers.json": (b"1\n2\n", no_objects),
        "mixed.json": (b'{"id": 1}\n[1]\n', no_objects),
        "deep.json": (b'{"a":' * 500 + b"1" + b"}" * 500, "JSON that is nested more than 128 deep"),
    }
    found = scanned("json", {"good.json": LINES, **{name: data for name, (data, _) in bad.items()}})
    assert {name: content.problem for name, content in found.items()} == {
        "good.json": "",
        **{name: reason for name, (_, reason) in bad.items()},
    }
    assert (found["good.json"].rows, found["good.json"].columns) == (5000, GOOD)


def test_each_bad_csv_file_is_told_apart_from_the_good_ones(scanned: Scan) -> None:
    bad = {
        "zero.csv": (b"", "empty file"),
        "torn.csv.gz": (gzip.compress(TABLE)[:-2000], "torn gzip: the file ends before its data does"),
        "few.csv": (b"id,name\n1\n", "line 2 has 1 fields where the header has 2"),
        "many.csv": (b"id,name\n1,2\n1,2,3\n", "line 3 has 3 fields where the header has 2"),
        "quote.csv": (b'id,name\n1,"abc\n', "line 2 has a quote that is never closed, or text behind one"),
        "twice.csv": (b"id,ID\n1,2\n", "its header names 'id' twice"),
        "nameless.csv": (b"id,\n1,2\n", "column 2 of its header has no name"),
        "latin.csv": ("id,name\n1,é\n".encode("latin-1"), "not UTF-8 text"),
    }
    found = scanned("csv", {"good.csv": TABLE, **{name: data for name, (data, _) in bad.items()}})
    assert {name: content.problem for name, content in found.items()} == {
        "good.csv": "",
        **{name: reason for name, (_, reason) in bad.items()},
    }
    assert found["good.csv"].rows == 5000


def test_a_parquet_file_that_was_cut_or_is_none_is_named(scanned: Scan, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "made.parquet")
    whole = (tmp_path / "made.parquet").read_bytes()
    found = scanned(
        "parquet",
        {"good.parquet": whole, "cut.parquet": whole[:-10], "page.parquet": b"<html>" * 10, "zero.parquet": b""},
    )
    assert found["good.parquet"] == FileContent(str(tmp_path / "good.parquet"), GOOD, 2)
    assert found["zero.parquet"].problem == "empty file"
    for name in ("cut.parquet", "page.parquet"):
        assert found[name].problem.startswith("not a whole Parquet file: ")
