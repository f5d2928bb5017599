"""DuckDB text that reads local source files with exactly the columns that were asked for.

Content that is not of the wanted type is an error that names file and column, never a rounded number or a silent
null; columns that a file does not hold are null. Only text is built here: no engine, no file is touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relayout.errors import SourceError, UsageError
from relayout.table.batches import Scalar
from relayout.table.names import quote_duckdb
from relayout.table.type_tree import List, Map, Node, Primitive, Struct, parse_node, text_of_node
from relayout.table.types import duckdb_type, sql_literal

SESSION_SETTINGS = ("SET TimeZone = 'UTC'",)
"""What a connection must have set before it runs these texts: local times mean UTC on every machine."""

NEEDS_EXACT_NUMBERS = "relayout needs exact numbers"
"""Stands in an error's text when the same read with `exact_numbers=True` can succeed."""

LONGEST_RECORD_BYTES = 16 << 20

_DOUBLE_DIGITS = 15
_LARGEST_EXACT = (1 << 53) - 1
_RANGE_BITS = {"int": 31, "long": 63}
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A local file as a reader needs to know it.

    `columns` are the names (for Parquet with their canonical types) in the order in which a CSV header or a Parquet
    footer lists them; JSON needs none. `values` are columns whose value the path tells: they win over the content,
    and content that says otherwise is an error. `line_end` is how a CSV header ends, empty where nothing follows it.
    """

    path: str
    format: str
    columns: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, Scalar], ...] = ()
    line_end: str = ""


def read_clause(
    files: Sequence[LocalFile],
    columns: Sequence[tuple[str, str]],
    *,
    filename: str = "",
    exact_numbers: bool = False,
) -> str:
    """A parenthesised subquery over all files with exactly these columns, in this order, in these types.

    `filename` names one more column, last, that holds each row's path. The plain mode reads JSON numbers as fast as
    DuckDB can and fails with NEEDS_EXACT_NUMBERS in the message where that would lose digits; the exact mode doesn't.
    """
    if not files:
        raise UsageError("no files to read", next="leave empty batches out")
    groups: dict[tuple[object, ...], list[LocalFile]] = {}
    for file in files:
        named = tuple(name for name, _ in file.values)
        groups.setdefault((file.format, file.columns, _delimiter(file), _new_line(file), named), []).append(file)
    selects = [_Select(tuple(group), tuple(columns), filename, exact_numbers).text() for group in groups.values()]
    return "(" + "\nUNION ALL ".join(selects) + ")"


def path_literal(path: str) -> str:
    """A path as a DuckDB string that means this file alone, whatever characters its name holds."""
    if _GLOB.search(path):
        # In a pattern DuckDB takes a backslash for a folder separator, and no spelling of it survives that.
        if "\\" in path:
            raise SourceError(
                "a path with a backslash and one of * ? [ cannot be read", where=path, next="rename the file"
            )
        path = _GLOB.sub(lambda found: f"[{found.group()}]", path)
    return text_literal(path)


def text_literal(text: str) -> str:
    """A text as a DuckDB string literal; only the quote is special in it."""
    return "'" + text.replace("'", "''") + "'"


def plain_text(value: str, type: str) -> str:
    """The text of an expression's value, as `from_text` takes it back."""
    if type == "timestamptz":
        return f"CAST(timezone('UTC', {value}) AS VARCHAR) || '+00:00'"
    if type == "binary" or type.startswith("fixed"):
        return f"lower(hex({value}))"
    return f"CAST({value} AS VARCHAR)"


def _delimiter(file: LocalFile) -> str:
    return delimiter_of(file.path) if file.format == "csv" else ""


def _new_line(file: LocalFile) -> str:
    # DuckDB takes the first line break for the lines' end, also where it stands inside a quoted column name, and then
    # it finds no rows at all. Otherwise it is left its own choice, so that files of several kinds are read together.
    if not any("\n" in name or "\r" in name for name, _ in file.columns) or not file.line_end:
        return ""
    return f"new_line='{file.line_end}', ".replace("\r", "\\r").replace("\n", "\\n")


def delimiter_of(path: str) -> str:
    """What parts the fields of a text table: a tab in `.tsv` files, a comma elsewhere."""
    return "\t" if re.search(r"\.tsv(\.\w+)?$", path, re.IGNORECASE) else ","


@dataclass(frozen=True, slots=True)
class _Select:
    """One SELECT over files that hold the same columns."""

    files: tuple[LocalFile, ...]
    columns: tuple[tuple[str, str], ...]
    filename: str
    exact: bool

    def text(self) -> str:
        build: Mapping[str, Callable[[], str]] = {"json": self._json, "csv": self._csv, "parquet": self._parquet}
        if self.files[0].format not in build:
            raise UsageError(f"{self.files[0].format!r} is not a format", next="use json, csv or parquet")
        return build[self.files[0].format]()

    def _json(self) -> str:
        types, items = [], []
        place = _free_name("relayout_file", [name for name, _ in self.columns])
        leaf = _exact_json if self.exact else _plain_json
        for name, type in self.columns:
            if not name:
                raise SourceError(
                    "a JSON key without a name cannot be a column", where=self.files[0].path, next="rename the key"
                )
            wanted = parse_node(type)
            types.append(f"{quote_duckdb(name)}: {text_literal(_json_types(wanted, self.exact))}")
            cooked = _convert(
                f"held.{quote_duckdb(name)}", wanted, None, leaf, _Place(name, f"held.{quote_duckdb(place)}")
            )
            items.append(self._item(name, type, cooked, place))
        if not types:
            types = ["relayout_nothing: 'VARCHAR'"]
        source = (
            f"read_json({self._paths()}, columns={{{', '.join(types)}}}, format='auto', records='true', "
            f"auto_detect=false, hive_partitioning=false, filename={text_literal(place)}, "
            f"maximum_object_size={LONGEST_RECORD_BYTES})"
        )
        return self._select(items, place, source)

    def _csv(self) -> str:
        header = self.files[0].columns
        if not header:
            raise SourceError("the header of a CSV file was not read", where=self.files[0].path)
        types = ", ".join(f"c{index}: 'VARCHAR'" for index in range(len(header)))
        items = []
        for name, type in self.columns:
            index = _position(name, [column for column, _ in header])
            cooked = None
            if index is not None:
                cooked = _convert(
                    f"held.c{index}", parse_node(type), None, _csv_value, _Place(name, "held.relayout_file")
                )
            items.append(self._item(name, type, cooked, "relayout_file"))
        source = (
            f"read_csv({self._paths()}, columns={{{types}}}, header=true, auto_detect=false, "
            f"delim={text_literal(_delimiter(self.files[0]))}, quote='\"', escape='\"', allow_quoted_nulls=false, "
            f"{_new_line(self.files[0])}hive_partitioning=false, filename='relayout_file')"
        )
        return self._select(items, "relayout_file", source)

    def _parquet(self) -> str:
        held = self.files[0].columns
        place = _free_name("relayout_file", [name for name, _ in held])
        items = []
        for name, type in self.columns:
            index = _position(name, [column for column, _ in held])
            cooked = None
            if index is not None:
                found, wanted = parse_node(held[index][1]), parse_node(type)
                column = f"held.{quote_duckdb(held[index][0])}"
                cooked = _convert(column, wanted, found, _parquet_value, _Place(name, f"held.{quote_duckdb(place)}"))
            items.append(self._item(name, type, cooked, place))
        source = f"read_parquet({self._paths()}, hive_partitioning=false, filename={text_literal(place)})"
        return self._select(items, place, source)

    def _item(self, name: str, type: str, content: str | None, place: str) -> str:
        value = content if content is not None else f"CAST(NULL AS {duckdb_type(type)})"
        if name in dict(self.files[0].values):
            literals = self._literals(name, type)
            told = literals[0] if len(set(literals)) == 1 else f"told.{quote_duckdb(name)}"
            value = _told_by_path(told, content, _Place(name, f"held.{quote_duckdb(place)}"))
        return f"{value} AS {quote_duckdb(name)}"

    def _literals(self, name: str, type: str) -> list[str]:
        return [sql_literal(dict(file.values)[name], type, "duckdb") for file in self.files]

    def _told(self, place: str) -> str:
        """A join with what the paths tell, where files differ: a SELECT per file would make thousands of scans."""
        lists = []
        for name, type in self.columns:
            if name in dict(self.files[0].values) and len(set(literals := self._literals(name, type))) > 1:
                lists.append(f"unnest([{', '.join(literals)}]) AS {quote_duckdb(name)}")
        if not lists:
            return ""
        paths = ", ".join(text_literal(file.path) for file in self.files)
        key = _free_name("relayout_path", [name for name, _ in self.columns])
        lists.append(f"unnest([{paths}]) AS {key}")
        return f" JOIN (SELECT {', '.join(lists)}) AS told ON held.{quote_duckdb(place)} = told.{key}"

    def _paths(self) -> str:
        return "[" + ", ".join(path_literal(file.path) for file in self.files) + "]"

    def _select(self, items: list[str], place: str, source: str) -> str:
        if self.filename:
            items = [*items, f"held.{quote_duckdb(place)} AS {quote_duckdb(self.filename)}"]
        return f"SELECT {', '.join(items)} FROM {source} AS held{self._told(place)}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, for the error that names it: the column, and the expression that gives the file."""

    column: str
    file: str

    def refuse(self, value: str, what: str) -> str:
        return (
            f"error(concat({text_literal(f'column {self.column!r} of ')}, {self.file}, ' holds ', "
            f"left(CAST({value} AS VARCHAR), 80), {text_literal(what)}))"
        )

    def not_a(self, value: str, type: Node) -> str:
        return self.refuse(value, f", which is not a value of type {text_of_node(type)}")


Leaf = Callable[[str, Primitive, Node | None, _Place], str]


def _convert(value: str, wanted: Node, found: Node | None, leaf: Leaf, place: _Place) -> str:
    """An expression of the wanted type; `found` is what the file holds where that is known (Parquet)."""
    if found == wanted or (found is None and not _has_conversion(wanted, leaf, place)):
        return value
    same_kind = found is None or type(found) is type(wanted)
    match wanted:
        case Primitive():
            return leaf(value, wanted, found, place)
        case _ if leaf is _csv_value:
            return _or_error(value, f"TRY_CAST(TRY_CAST({value} AS JSON) AS {_sql(wanted)})", wanted, place)
        case _ if not same_kind:
            return _or_error(value, f"TRY_CAST({value} AS {_sql(wanted)})", wanted, place)
        case Struct(fields):
            return _convert_struct(value, fields, found, leaf, place)
        case List(element):
            inner = found.element if isinstance(found, List) else None
            return f"list_transform({value}, lambda e: {_convert('e', element, inner, leaf, place)})"
        case Map(key, item):
            inner_key, inner_item = (found.key, found.value) if isinstance(found, Map) else (None, None)
            # Keys are texts in JSON, and Parquet's are never narrowed: they are cast and not looked at.
            entry = f"struct_pack(k := {_convert('e.key', key, inner_key, leaf, place)}, "
            entry += f"v := {_convert('e.value', item, inner_item, leaf, place)})"
            return f"map_from_entries(list_transform(map_entries({value}), lambda e: {entry}))"


def _convert_struct(
    value: str, fields: tuple[tuple[str, Node], ...], found: Node | None, leaf: Leaf, place: _Place
) -> str:
    held = dict(found.fields) if isinstance(found, Struct) else None
    parts = []
    for name, type in fields:
        if held is not None and name not in held:
            part = f"CAST(NULL AS {_sql(type)})"
        else:
            inner = held[name] if held is not None else None
            part = _convert(f"struct_extract({value}, {text_literal(name)})", type, inner, leaf, place)
        parts.append(f"{quote_duckdb(name)} := {part}")
    return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"


def _has_conversion(wanted: Node, leaf: Leaf, place: _Place) -> bool:
    match wanted:
        case Primitive():
            return leaf("x", wanted, None, place) != "x"
        case Struct(fields):
            return leaf is _csv_value or any(_has_conversion(type, leaf, place) for _, type in fields)
        case List(element):
            return leaf is _csv_value or _has_conversion(element, leaf, place)
        case Map(key, item):
            return leaf is _csv_value or _has_conversion(key, leaf, place) or _has_conversion(item, leaf, place)


def _json_types(node: Node, exact: bool) -> str:
    """The DuckDB type in which a JSON value is read, before it is converted."""
    match node:
        case Primitive("int" | "long"):
            return "JSON" if exact else "DOUBLE"
        case Primitive("decimal") if exact and node.args[0] > _DOUBLE_DIGITS:
            return "JSON"
        case Primitive("binary" | "fixed"):
            return "VARCHAR"
        case Struct(fields):
            parts = ", ".join(f"{quote_duckdb(name)} {_json_types(type, exact)}" for name, type in fields)
            return f"STRUCT({parts})"
        case List(element):
            return f"{_json_types(element, exact)}[]"
        case Map(key, item):
            return f"MAP({_json_types(key, exact)}, {_json_types(item, exact)})"
        case _:
            return _sql(node)


def _plain_json(value: str, wanted: Primitive, _found: Node | None, place: _Place) -> str:
    match wanted:
        case Primitive("int" | "long" as name):
            # As integers DuckDB would round 1.5 in silence; as doubles all but the largest are exact, at full speed.
            low, high = (-(1 << 31), (1 << 31) - 1) if name == "int" else (-_LARGEST_EXACT, _LARGEST_EXACT)
            refusal = place.not_a(value, wanted)
            if name == "long":
                larger = f"{value} = trunc({value}) AND isfinite({value})"
                refusal = f"CASE WHEN {larger} THEN error({text_literal(NEEDS_EXACT_NUMBERS)}) ELSE {refusal} END"
            fits = f"{value} = trunc({value}) AND {value} BETWEEN {low} AND {high}"
            return f"CASE WHEN {fits} THEN CAST({value} AS {_sql(wanted)}) WHEN {value} IS NOT NULL THEN {refusal} END"
        case Primitive("decimal", (precision, scale)) if precision > _DOUBLE_DIGITS:
            fits = f"abs({value}) < 1e{_DOUBLE_DIGITS - scale}"
            lost = f"error({text_literal(NEEDS_EXACT_NUMBERS)})"
            return f"CASE WHEN {fits} THEN {value} WHEN {value} IS NOT NULL THEN {lost} END"
        case Primitive("binary" | "fixed"):
            return _or_error(value, f"TRY(from_base64({value}))", wanted, place)
        case _:
            return value


def _exact_json(value: str, wanted: Primitive, _found: Node | None, place: _Place) -> str:
    text = f"json_extract_string({value}, '$')"
    match wanted:
        case Primitive("int" | "long"):
            as_number = f"CASE {text} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END"
            return _whole_number(as_number, wanted, place)
        case Primitive("decimal", (precision, scale)) if precision > _DOUBLE_DIGITS:
            # DuckDB has read a number with a point as a double by now: beyond its digits the text is an invention.
            lost = f"json_type({value}) = 'DOUBLE' AND abs(TRY_CAST({text} AS DOUBLE)) >= 1e{_DOUBLE_DIGITS - scale}"
            refusal = place.refuse(text, ", more digits than a JSON number keeps; write it in quotes")
            cast = _or_error(text, f"TRY_CAST({text} AS {_sql(wanted)})", wanted, place)
            return f"CASE WHEN {lost} THEN {refusal} ELSE {cast} END"
        case _:
            return _plain_json(value, wanted, _found, place)


def _csv_value(value: str, wanted: Primitive, _found: Node | None, place: _Place) -> str:
    if wanted.name in ("string", "null"):
        return value
    # A quoted nothing is an empty string; in a column of any other type it is as empty as an unquoted one.
    value = f"nullif({value}, '')"
    match wanted:
        case Primitive("int" | "long"):
            return _whole_number(value, wanted, place)
        case Primitive("binary" | "fixed"):
            return f"encode({value})"
        case _:
            return _or_error(value, f"TRY_CAST({value} AS {_sql(wanted)})", wanted, place)


def _parquet_value(value: str, wanted: Primitive, found: Node | None, place: _Place) -> str:
    match wanted, found:
        case Primitive("string"), Primitive("binary" | "fixed"):
            return _or_error(value, f"TRY(decode({value}))", wanted, place)
        case Primitive("string"), Struct() | List() | Map():
            return f"CAST(to_json({value}) AS VARCHAR)"
        case Primitive("binary" | "fixed"), Primitive("string"):
            return f"encode({value})"
        case Primitive("int" | "long"), Primitive("string"):
            return _whole_number(value, wanted, place)
        case Primitive("int" | "long"), Primitive("float" | "double" | "decimal"):
            cast = f"CASE WHEN {value} = trunc({value}) THEN TRY_CAST({value} AS {_sql(wanted)}) END"
            return _or_error(value, cast, wanted, place)
        case _:
            return _or_error(value, f"TRY_CAST({value} AS {_sql(wanted)})", wanted, place)


def _whole_number(text: str, wanted: Primitive, place: _Place) -> str:
    # A cast of text to an integer rounds, and takes 0x10: a number it is only if reading it as a double agrees.
    cast = f"TRY_CAST({text} AS {_sql(wanted)})"
    checked = f"CASE WHEN CAST({cast} AS DOUBLE) = TRY_CAST({text} AS DOUBLE) THEN {cast} END"
    return _or_error(text, checked, wanted, place)


def _or_error(value: str, converted: str, wanted: Node, place: _Place) -> str:
    return f"coalesce({converted}, CASE WHEN {value} IS NOT NULL THEN {place.not_a(value, wanted)} END)"


def _told_by_path(told: str, content: str | None, place: _Place) -> str:
    if content is None:
        return told
    refusal = place.refuse(content, ", but its path says otherwise")
    return f"CASE WHEN {content} IS NOT NULL AND {content} IS DISTINCT FROM {told} THEN {refusal} ELSE {told} END"


def _position(name: str, names: Sequence[str]) -> int | None:
    """Where a column stands: by its exact name, else by the name in another case if there is just one such."""
    if name in names:
        return names.index(name)
    similar = [index for index, other in enumerate(names) if other.lower() == name.lower()]
    return similar[0] if len(similar) == 1 else None


def _free_name(wanted: str, taken: Sequence[str]) -> str:
    used = {name.lower() for name in taken}
    while wanted in used:
        wanted += "_"
    return wanted


def _sql(node: Node) -> str:
    return duckdb_type(text_of_node(node))
