"""What the text of `read_clause` promises, run in the DuckDB that the kernels use."""

from __future__ import annotations

import gzip
import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relayout.errors import SourceError, UsageError
from relayout.table.duckdb_text import NEEDS_EXACT_NUMBERS, SESSION_SETTINGS, LocalFile, read_clause


def rows(files: list[LocalFile], columns: list[tuple[str, str]], **options: Any) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for setting in SESSION_SETTINGS:
            connection.execute(setting)
        return connection.execute(f"SELECT * FROM {read_clause(files, columns, **options)}").fetchall()


def json_file(folder: Path, *lines: str, name: str = "a.json") -> LocalFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return LocalFile(str(path), "json")


def csv_file(folder: Path, text: str, name: str = "a.csv") -> LocalFile:
    path = folder / name
    path.write_bytes(text.encode())
    header = text.splitlines()[0].replace('"', "").split("\t" if ".tsv" in name else ",")
    return LocalFile(str(path), "csv", tuple((column, "string") for column in header))


def parquet_file(folder: Path, data: pa.Table, columns: dict[str, str], name: str = "a.parquet") -> LocalFile:
    pq.write_table(data, folder / name)
    return LocalFile(str(folder / name), "parquet", tuple(columns.items()))


def test_json_columns_that_are_missing_are_null_and_others_are_passed_over(tmp_path: Path) -> None:
    file = json_file(tmp_path, '{"a": 1, "zz": 5}', "", "   ", '{"b": "x"}', "{}")
    assert rows([file], [("a", "long"), ("b", "string")]) == [(1, None), (None, "x"), (None, None)]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("content", "type", "expected"),
    [
        ("7", "long", 7),
        ('"7"', "long", 7),
        ("1.0", "long", 1),
        ("1e3", "long", 1000),
        ("-9007199254740991", "long", -9007199254740991),
        ("2147483647", "int", 2147483647),
        ("5", "string", "5"),
        ("true", "string", "true"),
        ('{"k":[1,2]}', "string", '{"k":[1,2]}'),
        ('"\\u00e9\\ud83d\\ude00"', "string", "é😀"),
        ("123456789012345678901234567890", "string", "123456789012345678901234567890"),
        ("1.25", "decimal(9,2)", Decimal("1.25")),
        ("1234567890123.45", "decimal(18,2)", None),
        ("12345678901.25", "decimal(18,2)", Decimal("12345678901.25")),
        ('"2020-01-31"', "date", date(2020, 1, 31)),
        ('"aGVsbG8="', "binary", b"hello"),
        ('{"b": [{"c": 1, "x": 2}]}', "struct<b: list<struct<c: long>>>", {"b": [{"c": 1}]}),
        ('{"k": 1, "l": 2}', "map<string, long>", {"k": 1, "l": 2}),
        ("[[1], [2, null], null]", "list<list<int>>", [[1], [2, None], None]),
        ("null", "struct<a: long>", None),
    ],
)
def test_json_values_arrive_in_the_wanted_type(
    tmp_path: Path, content: str, type: str, expected: object, exact: bool
) -> None:
    if content == "1234567890123.45":
        expected = Decimal(content)
    assert rows([json_file(tmp_path, f'{{"a": {content}}}')], [("a", type)], exact_numbers=exact) == [(expected,)]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("content", "type"),
    [
        ('"abc"', "long"),
        ("1.5", "long"),
        ("1.5", "int"),
        ("3000000000", "int"),
        ('""', "long"),
        ('{"x": 1}', "long"),
        ("1e400", "int"),
        ('"x"', "double"),
        ('"2020-02-31"', "date"),
        ("1", "struct<a: long>"),
        ('{"a": 1.5}', "struct<a: long>"),
        ("[1, 2.5]", "list<long>"),
        ('{"k": 1.5}', "map<string, long>"),
        ("123456.7", "decimal(4,2)"),
        ('"!!"', "binary"),
    ],
)
def test_json_of_another_type_is_an_error_that_names_the_file(
    tmp_path: Path, content: str, type: str, exact: bool
) -> None:
    file = json_file(tmp_path, '{"a": null}', f'{{"a": {content}}}', name="wrong one.json")
    with pytest.raises(duckdb.Error, match=r"wrong one\.json"):
        rows([file], [("a", type)], exact_numbers=exact)


@pytest.mark.parametrize("content", ["9223372036854775807", "-9223372036854775808", "9007199254740993"])
def test_integers_that_a_double_cannot_hold_are_read_exactly_or_not_at_all(tmp_path: Path, content: str) -> None:
    file = json_file(tmp_path, f'{{"a": {content}}}')
    with pytest.raises(duckdb.Error, match=NEEDS_EXACT_NUMBERS):
        rows([file], [("a", "long")])
    assert rows([file], [("a", "long")], exact_numbers=True) == [(int(content),)]


def test_decimals_beyond_a_double_are_exact_in_quotes_and_refused_bare(tmp_path: Path) -> None:
    quoted = json_file(tmp_path, '{"a": "12345678901234567.89"}', '{"a": 12345678901234567890}')
    bare = json_file(tmp_path, '{"a": 12345678901234567.89}', name="bare.json")
    for file in (quoted, bare):
        with pytest.raises(duckdb.Error, match=NEEDS_EXACT_NUMBERS):
            rows([file], [("a", "decimal(38,2)")])
    assert rows([quoted], [("a", "decimal(38,2)")], exact_numbers=True) == [
        (Decimal("12345678901234567.89"),),
        (Decimal("12345678901234567890.00"),),
    ]
    with pytest.raises(duckdb.Error, match=r"bare\.json.*write it in quotes"):
        rows([bare], [("a", "decimal(38,2)")], exact_numbers=True)


def test_json_lines_arrays_gzip_and_zstandard_are_read_together(tmp_path: Path) -> None:
    lines = json_file(tmp_path, '{"a": 1}')
    array = json_file(tmp_path, '[{"a": 2},', '{"a": 3}]', name="array.json")
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(b'{"a": 4}\n') + gzip.compress(b'{"a": 5}\n'))
    (tmp_path / "d.json.zst").write_bytes(pa.compress(b'{"a": 6}\n', codec="zstd", asbytes=True))
    packed = [LocalFile(str(tmp_path / name), "json") for name in ("c.json.gz", "d.json.zst")]
    assert rows([lines, array, *packed], [("a", "long")]) == [(number,) for number in range(1, 7)]


def test_a_file_whose_first_row_is_no_object_is_not_taken_for_a_column(tmp_path: Path) -> None:
    assert rows([json_file(tmp_path, "{}", '{"a": 1}')], [("a", "long")]) == [(None,), (1,)]
    with pytest.raises(duckdb.Error, match=r"a\.json"):
        rows([json_file(tmp_path, "1", "2")], [("a", "long")])


ODD_NAMES = [
    "sp ace",
    "qu'ote",
    'dq"',
    "pc%20",
    "st*ar",
    "br[1]",
    "q?",
    "é☃",
    "new\nline",
    "back\\slash",
    "cur{a,b}",
    "[!x]",
    "**",
    "a]b*",
    "-[a-c]",
    "year=2020",
    "#;&",
]


@pytest.mark.parametrize("odd", ODD_NAMES)
@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_a_file_with_an_odd_name_in_a_folder_with_an_odd_name_is_read_alone(
    tmp_path: Path, odd: str, format: str
) -> None:
    for folder in (odd, "other"):
        (tmp_path / folder).mkdir()
        for number, name in enumerate((odd, "stXar", "br1", "qx", "x", "zz", "b")):
            path = tmp_path / folder / f"{name}.{format}"
            value = {"a": [number if folder == odd else 100 + number]}
            if format == "json":
                path.write_text(json.dumps({"a": value["a"][0]}))
            elif format == "csv":
                path.write_text(f"a\n{value['a'][0]}\n")
            else:
                pq.write_table(pa.table(value), path)
    wanted = str(tmp_path / odd / f"{odd}.{format}")
    file = LocalFile(wanted, format, (("a", "long"),) if format != "json" else ())
    assert rows([file], [("a", "long")], filename="f") == [(0, wanted)]


def test_a_name_no_pattern_can_spell_is_refused_before_reading(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="backslash"):
        read_clause([LocalFile(str(tmp_path / "a\\b*.json"), "json")], [("a", "long")])


def test_odd_column_names_are_read_and_errors_still_name_file_and_column(tmp_path: Path) -> None:
    names = ["a b", 'd"q', "s'q", "filename", "relayout_file", "file_index", "é", "e", "\n", "x.y", "select"]
    file = json_file(tmp_path, json.dumps({name: number for number, name in enumerate(names)}))
    file = LocalFile(file.path, "json", (), (("z", "told"),))
    other = LocalFile(json_file(tmp_path, "{}", name="b.json").path, "json", (), (("z", "else"),))
    columns = [(name, "long") for name in names] + [("z", "string")]
    # Files are read by several threads, so the order of their rows is nobody's promise.
    found = sorted(rows([file, other], columns), key=lambda row: row[-1])
    assert found == [(*[None] * len(names), "else"), (*range(len(names)), "told")]
    with pytest.raises(duckdb.Error, match=re.escape("s'q")):
        rows([json_file(tmp_path, '{"s\'q": "no"}')], [("s'q", "binary")])


def test_csv_keeps_quotes_newlines_and_tells_empty_from_quoted_empty(tmp_path: Path) -> None:
    text = 'a,b,c\n01001,"q,""z""\nnew",\n3,,""\n" x ",NULL,#\n'
    file = csv_file(tmp_path, text)
    columns = [("c", "string"), ("a", "string"), ("b", "string"), ("d", "long")]
    assert rows([file], columns) == [
        (None, "01001", 'q,"z"\nnew', None),
        ("", "3", None, None),
        ("#", " x ", "NULL", None),
    ]


def test_csv_files_with_other_headers_are_joined_by_name(tmp_path: Path) -> None:
    first = csv_file(tmp_path, "a,b\n1,x\n")
    second = csv_file(tmp_path, "b,A,more\r\ny,2,z\r\n", name="b.csv")
    third = csv_file(tmp_path, "\tb\n9\tz\n", name="c.tsv")
    assert rows([first, second, third], [("a", "long"), ("b", "string")]) == [(1, "x"), (2, "y"), (None, "z")]


@pytest.mark.parametrize(
    ("content", "type"),
    [
        ("abc", "long"),
        ("1.5", "long"),
        ("15e-1", "int"),
        ("0x10", "long"),
        ("3000000000", "int"),
        ("x", "double"),
        ("2020-02-31", "date"),
        ("maybe", "boolean"),
    ],
)
def test_csv_of_another_type_is_an_error_that_names_the_file(tmp_path: Path, content: str, type: str) -> None:
    with pytest.raises(duckdb.Error, match=r"a\.csv"):
        rows([csv_file(tmp_path, f"a,b\n{content},1\n")], [("a", type)])


def test_csv_numbers_are_read_whole_and_an_empty_quoted_one_is_null(tmp_path: Path) -> None:
    file = csv_file(tmp_path, 'a,b,c\n9223372036854775807,1.25,true\n"","",""\n')
    expected = [(9223372036854775807, Decimal("1.25"), True), (None, None, None)]
    assert rows([file], [("a", "long"), ("b", "decimal(18,2)"), ("c", "boolean")]) == expected


@pytest.mark.parametrize("text", ["a,b\n1,2\n3\n", "a,b\n1,2\n3,4,5\n", 'a,b\n1,"x\n2,y\n'])
def test_ragged_and_unclosed_csv_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(duckdb.Error):
        rows([csv_file(tmp_path, text)], [("a", "string"), ("b", "string")])


def test_parquet_is_cast_widened_and_filled_with_nulls(tmp_path: Path) -> None:
    first = parquet_file(
        tmp_path,
        pa.table({"a": pa.array([1, None], pa.int32()), "s": [{"x": 1, "y": "t"}, None], "b": [b"k", None]}),
        {"a": "int", "s": "struct<x: long, y: string>", "b": "binary"},
    )
    second = parquet_file(
        tmp_path, pa.table({"A": [2.0], "l": [[1, 2]]}), {"A": "double", "l": "list<long>"}, name="b.parquet"
    )
    columns = [("a", "long"), ("s", "struct<y: string, z: int, x: double>"), ("b", "string"), ("l", "list<double>")]
    assert rows([first, second], columns) == [
        (1, {"y": "t", "z": None, "x": 1.0}, "k", None),
        (None, None, None, None),
        (2, None, None, [1.0, 2.0]),
    ]


@pytest.mark.parametrize(
    ("values", "found", "wanted"),
    [
        (["abc"], "string", "long"),
        ([1.5], "double", "long"),
        ([Decimal("1.5")], "decimal(2,1)", "int"),
        ([1 << 40], "long", "int"),
        ([[1.5]], "list<double>", "list<long>"),
        ([{"x": 1}], "struct<x: long>", "long"),
    ],
)
def test_parquet_of_another_type_is_an_error_that_names_the_file(
    tmp_path: Path, values: list[object], found: str, wanted: str
) -> None:
    file = parquet_file(tmp_path, pa.table({"a": values}), {"a": found}, name="odd one.parquet")
    with pytest.raises(duckdb.Error, match=r"odd one\.parquet"):
        rows([file], [("a", wanted)])


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_what_the_path_says_wins_and_content_that_disagrees_is_an_error(tmp_path: Path, format: str) -> None:
    def file(number: int, content: int | None, told: int | None) -> LocalFile:
        path = tmp_path / f"{number}.{format}"
        held = {"a": number} | ({} if content is None else {"year": content})
        if format == "json":
            path.write_text(json.dumps(held))
        elif format == "csv":
            path.write_text(",".join(held) + "\n" + ",".join(map(str, held.values())) + "\n")
        else:
            pq.write_table(pa.table({name: [value] for name, value in held.items()}), path)
        columns = tuple((name, "long") for name in held) if format != "json" else ()
        return LocalFile(str(path), format, columns, (("year", told),))

    columns = [("a", "long"), ("year", "int")]
    agreed = [file(1, None, 2020), file(2, 2021, 2021), file(3, None, None), file(4, None, 2023)]
    assert sorted(rows(agreed, columns)) == [(1, 2020), (2, 2021), (3, None), (4, 2023)]
    with pytest.raises(duckdb.Error, match=rf"5\.{format}.*its path says otherwise"):
        rows([file(5, 2020, 2021)], columns)


def test_no_files_and_unknown_formats_are_refused() -> None:
    with pytest.raises(UsageError):
        read_clause([], [("a", "long")])
    with pytest.raises(UsageError, match="orc"):
        read_clause([LocalFile("/x", "orc")], [("a", "long")])


def test_timestamps_without_a_zone_mean_utc(tmp_path: Path) -> None:
    file = json_file(tmp_path, '{"t": "2020-01-31T10:00:00"}', '{"t": "2020-01-31T10:00:00+02:00"}')
    clause = read_clause([file], [("t", "timestamptz")])
    with duckdb.connect() as connection:
        for setting in SESSION_SETTINGS:
            connection.execute(setting)
        found = connection.execute(f"SELECT epoch_ms(t) FROM {clause}").fetchall()
    assert [first - second for (first,), (second,) in [(found[0], found[1])]] == [2 * 3600 * 1000]


def test_only_the_number_of_rows_can_be_asked_for(tmp_path: Path) -> None:
    clause = read_clause([json_file(tmp_path, '{"a": 1}', "{}")], [], filename="f")
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM {clause}").fetchall() == [(2,)]
