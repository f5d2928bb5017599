"""Laying rows out: one DuckDB relation in, Iceberg data files out, each described as ContentFileParser reads it."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.kernels.metrics import Leaf, file_metrics
from relayout.kernels.order import Curve, rankers_of, register_key
from relayout.kernels.places import place_for
from relayout.table.batches import BatchKey, Scalar
from relayout.table.duckdb_text import plain_text, text_literal
from relayout.table.layouts import transform_result_type
from relayout.table.names import batch_file_prefix, partition_path, quote_duckdb
from relayout.table.scalars import partition_json
from relayout.table.types import duckdb_type, from_text

if TYPE_CHECKING:
    import duckdb

ROW_GROUP_ROWS = 122_880
"""DuckDB's own choice; a file is cut only between row groups, so wide rows need fewer of them in one."""

OF_ANY_LENGTH = ("string", "binary", "fixed")

_QUOTE = "'"

LONGEST_FOLDER_VALUE_BYTES = 60
"""A folder name holds up to 255 bytes, and percent encoding makes three of each."""


@dataclass(frozen=True, slots=True)
class TargetField:
    """One field of the partition spec; `type` is the type of the source column."""

    name: str
    column: str
    transform: str
    type: str

    @property
    def result_type(self) -> str:
        return transform_result_type(self.transform, self.type)


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go and how they lie there.

    `constants` are columns that have one value in all rows given to one call; `batch_columns` tag each output file and
    `named_batch_columns`, those that are no partition columns, stand in its name.
    `scratch` is a folder on the same disk as a local `data_location`. `partition` is set where all rows are known to be
    of one partition, in the JSON form of a data file; nothing is computed and nothing split then. `curve` orders rows
    in place of `order_by`.
    """

    data_location: str
    scratch: str
    file_prefix: str
    spec_id: int
    fields: tuple[TargetField, ...]
    columns: tuple[tuple[str, str], ...]
    field_ids: str
    leaves: tuple[Leaf, ...]
    order_by: tuple[str, ...]
    batch_columns: tuple[tuple[str, str], ...]
    named_batch_columns: tuple[str, ...]
    target_file_bytes: int
    codec: str
    store: Mapping[str, str]
    partition: tuple[Scalar, ...] | None = None
    row_group_rows: int = ROW_GROUP_ROWS
    curve: Curve | None = None


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One written data file and the batch that its rows belong to."""

    batch: BatchKey
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Token:
    """A column that COPY splits files by; the text in the folder name leads back to the value.

    `slot` says whose value it is: `p` with the number of a partition field, `b` with that of a batch column.
    """

    slot: str
    name: str
    expression: str
    type: str
    hashed: bool


@dataclass(frozen=True, slots=True)
class Layouts:
    """Files of the target that was asked for, and of each other target in its order: its files, or why it has none.

    `seconds` is what each of the others took.
    """

    files: list[OutputFile]
    others: list[list[OutputFile] | str]
    seconds: list[float]

    @property
    def all_files(self) -> list[OutputFile]:
        written = [other for other in self.others if not isinstance(other, str)]
        return [file for files in (self.files, *written) for file in files]


def write_rows(
    connection: duckdb.DuckDBPyConnection, relation: str, target: Target, constants: Mapping[str, Scalar]
) -> list[OutputFile]:
    """Write all rows of `relation` (a FROM item with exactly the target's columns) and describe the files.

    Files appear under `data_location` only when all of them are whole.
    """
    return write_layouts(connection, relation, target, constants, ()).files


def write_layouts(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    target: Target,
    constants: Mapping[str, Scalar],
    others: Sequence[Target],
) -> Layouts:
    """Write the rows for a target, and the same rows for others; what goes wrong with another one harms nobody else.

    The others are laid out from the files just written, because reading those is cheaper than computing rows again.
    """
    with _folder_in(target) as folder:
        if target.curve is not None:
            relation = _staged(connection, relation, folder)
        written = _written(connection, relation, target, constants, folder)
        again: list[list[OutputFile] | str] = []
        seconds: list[float] = []
        for other in others:
            begun = time.monotonic()
            try:
                again.append(_laid_out_again(connection, written, other, constants))
            except Exception as error:  # noqa: BLE001
                # The reason travels as a value: the target itself has its rows, and must not wait for this one.
                again.append(_first_line(error))
            seconds.append(round(time.monotonic() - begun, 3))
        return Layouts(publish(written, target), again, seconds)


@contextmanager
def _folder_in(target: Target) -> Iterator[Path]:
    folder = Path(target.scratch) / uuid.uuid4().hex
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _written(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    target: Target,
    constants: Mapping[str, Scalar],
    folder: Path,
) -> list[tuple[BatchKey, dict[str, Any]]]:
    tokens = _tokens(connection, target, constants)
    if target.curve is not None:
        rankers = rankers_of(connection, relation, target.curve)
        target = replace(target, order_by=(register_key(connection, target.curve, rankers),))
    rows = connection.execute(_copy_statement(relation, target, tokens, folder)).fetchall()
    return [_described(row, target, tokens, constants) for row in rows if row[1] > 0]


def _staged(connection: duckdb.DuckDBPyConnection, relation: str, folder: Path) -> str:
    """The rows as something that can be read twice: a curve is drawn through a sample before rows are put on it."""
    place = str(folder / "staged.parquet").replace(_QUOTE, _QUOTE * 2)
    connection.execute(f"COPY (SELECT * FROM {relation}) TO '{place}' (FORMAT parquet)")
    return f"read_parquet('{place}', hive_partitioning = false)"


def _laid_out_again(
    connection: duckdb.DuckDBPyConnection,
    written: Sequence[tuple[BatchKey, dict[str, Any]]],
    target: Target,
    constants: Mapping[str, Scalar],
) -> list[OutputFile]:
    if not written:
        return []
    files = ", ".join(f"'{str(content['file-path']).replace(_QUOTE, _QUOTE * 2)}'" for _, content in written)
    # No file has a partition folder's columns missing, and a folder's name must never become a value.
    relation = f"read_parquet([{files}], hive_partitioning = false)"
    with _folder_in(target) as folder:
        return publish(_written(connection, relation, target, constants, folder), target)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _copy_statement(relation: str, target: Target, tokens: Sequence[_Token], folder: Path) -> str:
    columns = [
        f"CAST({quote_duckdb(name)} AS {duckdb_type(kind)}) AS {quote_duckdb(name)}" for name, kind in target.columns
    ]
    columns += [f"{token.expression} AS {token.name}" for token in tokens]
    order = f" ORDER BY {', '.join(target.order_by)}" if target.order_by else ""
    options = [
        "FORMAT parquet",
        f"COMPRESSION {target.codec}",
        "RETURN_STATS",
        # Iceberg writes none unless a table asks for it, and in small files they are a tenth of the bytes.
        "WRITE_BLOOM_FILTER false",
        f"FIELD_IDS {target.field_ids}",
        f"FILENAME_PATTERN {text_literal(target.file_prefix + '-{uuid}')}",
        f"FILE_SIZE_BYTES {target.target_file_bytes}",
        f"ROW_GROUP_SIZE {target.row_group_rows}",
    ]
    if tokens:
        options.append(f"PARTITION_BY ({', '.join(token.name for token in tokens)})")
    place = str(folder / "out").replace("'", "''")
    return f"COPY (SELECT {', '.join(columns)} FROM {relation}{order}) TO '{place}' ({', '.join(options)})"


def _tokens(connection: duckdb.DuckDBPyConnection, target: Target, constants: Mapping[str, Scalar]) -> list[_Token]:
    tokens: list[_Token] = []
    stem = _free_stem(name for name, _ in target.columns)
    for index, field in enumerate(target.fields if target.partition is None else ()):
        if field.transform == "void" or (field.transform == "identity" and field.column in constants):
            continue
        tokens.append(_token(stem, f"p{index}", transformed(connection, field), field.result_type))
    for index, (column, kind) in enumerate(target.batch_columns):
        if column not in constants:
            expression = f"CAST({quote_duckdb(column)} AS {duckdb_type(kind)})"
            tokens.append(_token(stem, f"b{index}", expression, kind))
    return tokens


def _free_stem(columns: Iterable[str]) -> str:
    """What the names of tokens begin with and no column's name does."""
    taken = [name.lower() for name in columns]
    stem = "__relayout_"
    while any(name.startswith(stem) for name in taken):
        stem += "_"
    return stem


def _token(stem: str, slot: str, expression: str, kind: str) -> _Token:
    text = plain_text(expression, kind)
    if not kind.startswith(OF_ANY_LENGTH):
        return _Token(slot, stem + slot, text, kind, hashed=False)
    limited = f"CASE WHEN strlen({text}) > {LONGEST_FOLDER_VALUE_BYTES} THEN 'h' || md5({text}) ELSE 'v' || {text} END"
    return _Token(slot, stem + slot, limited, kind, hashed=True)


def transformed(connection: duckdb.DuckDBPyConnection, field: TargetField) -> str:
    """The partition value of the field as a DuckDB expression."""
    column = f"CAST({quote_duckdb(field.column)} AS {duckdb_type(field.type)})"
    name, _, argument = field.transform.rstrip("]").partition("[")
    match name:
        case "identity":
            return column
        case "year":
            return f"CAST(year({column}) - 1970 AS INTEGER)"
        case "month":
            return f"CAST((year({column}) - 1970) * 12 + month({column}) - 1 AS INTEGER)"
        case "day":
            return f"CAST({column} AS DATE)"
        case "hour":
            return f"CAST(floor(epoch_us({column}) / 3600000000.0) AS INTEGER)"
        case "truncate" | "bucket":
            return f"{_transform_function(connection, name, int(argument), field)}({column})"
    raise ValueError(f"unknown transform {field.transform}")


def _transform_function(connection: duckdb.DuckDBPyConnection, name: str, argument: int, field: TargetField) -> str:
    """Iceberg's own (Rust) implementation as a vectorised function, so that every engine agrees on the value."""
    from duckdb.func import FunctionNullHandling, PythonUDFType
    from pyiceberg.transforms import BucketTransform, TruncateTransform

    from relayout.table.types import iceberg_type

    transform: Any = (BucketTransform if name == "bucket" else TruncateTransform)(argument)
    apply = transform.pyarrow_transform(iceberg_type(field.type))

    # DuckDB evaluates the annotations of what it registers, and PyIceberg's name types that only a checker imports.
    def vectorised(values: Any) -> Any:
        return apply(values)

    function = f"relayout_{name}_{uuid.uuid4().hex[:8]}"
    connection.create_function(
        function,
        vectorised,
        [duckdb_type(field.type)],
        duckdb_type(field.result_type),
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
    )
    return function


def _described(
    row: tuple[Any, ...], target: Target, tokens: Sequence[_Token], constants: Mapping[str, Scalar]
) -> tuple[BatchKey, dict[str, Any]]:
    path, records, size, _, statistics, keys = row[:6]
    values: dict[str, Scalar] = {}
    for token in tokens:
        text = (keys or {}).get(token.name)
        values[token.slot] = None if text is None else _value_of(token, text, path, target)
    batch = BatchKey.of(
        [name for name, _ in target.batch_columns],
        [
            values[f"b{index}"] if f"b{index}" in values else constants[name]
            for index, (name, _) in enumerate(target.batch_columns)
        ],
    )
    content = {
        "spec-id": target.spec_id,
        "content": "data",
        "file-path": path,
        "file-format": "parquet",
        "partition": _partition(values, target, constants),
        "file-size-in-bytes": size,
        "record-count": records,
        **file_metrics(statistics, target.leaves),
    }
    return batch, content


def _partition(values: Mapping[str, Scalar], target: Target, constants: Mapping[str, Scalar]) -> list[Scalar]:
    if target.partition is not None:
        return list(target.partition)
    told: list[Scalar] = []
    for index, field in enumerate(target.fields):
        if field.transform == "void":
            told.append(None)
        else:
            value = values[f"p{index}"] if f"p{index}" in values else constants[field.column]
            told.append(partition_json(value, field.result_type))
    return told


def _value_of(token: _Token, text: str, path: str, target: Target) -> Scalar:
    if token.hashed:
        text = text[1:] if text[0] == "v" else _read_long_value(token, path, target)
    return from_text(text, token.type)


def _read_long_value(token: _Token, path: str, target: Target) -> str:
    """A value too long for a folder name, taken from the file's first row."""
    import pyarrow.parquet as pq

    index = int(token.slot[1:])
    if token.slot[0] == "p":
        column, transform = target.fields[index].column, target.fields[index].transform
    else:
        column, transform = target.batch_columns[index][0], "identity"
    place = [name for name, _ in target.columns].index(column)
    value = next(pq.ParquetFile(path).iter_batches(1)).column(place)[0].as_py()
    if transform.startswith("truncate["):
        value = value[: int(transform[len("truncate[") : -1])]
    return value.hex() if isinstance(value, bytes) else str(value)


def publish(described: Sequence[tuple[BatchKey, dict[str, Any]]], target: Target) -> list[OutputFile]:
    """Move whole files to where the table keeps them; if one cannot be moved, none stays there."""
    place = place_for(target.data_location, target.store)
    folders: dict[str, list[tuple[str, OutputFile]]] = {}
    for batch, content in described:
        written = str(content["file-path"])
        file = OutputFile(batch, {**content, "file-path": _final_path(batch, content, target)})
        folders.setdefault(os.path.dirname(written), []).append((written, file))
    published: list[OutputFile] = []
    try:
        for folder, members in folders.items():
            final = _final_folder(folder, members)
            if final and place.move_folder(folder, final):
                published += [file for _, file in members]
                continue
            for written, file in members:
                place.move(written, str(file.content["file-path"]))
                published.append(file)
    except BaseException:
        withdraw(published, target)
        raise
    return published


def _final_folder(folder: str, members: Sequence[tuple[str, OutputFile]]) -> str:
    """Where the folder can go as it is, because it holds just these files under their final names; else empty.

    One move then takes the place of making a folder, moving a file and removing a folder.
    """
    finals = {os.path.split(str(file.content["file-path"])) for _, file in members}
    parents = {parent for parent, _ in finals}
    as_they_are = {name for _, name in finals} == set(os.listdir(folder))
    return parents.pop() if as_they_are and len(parents) == 1 else ""


@contextmanager
def withdrawn_on_failure(files: Sequence[OutputFile], target: Target) -> Iterator[None]:
    """Rows that turn out wrong after they were written go again, because the driver never hears of their files."""
    try:
        yield
    except BaseException:
        withdraw(files, target)
        raise


def withdraw(files: Sequence[OutputFile], target: Target) -> None:
    """Take away files of which nobody was told yet, so that no commit can have used them."""
    for file in files:
        address = str(file.content["file-path"])
        place_for(address, target.store).remove(address)


def _final_path(batch: BatchKey, content: Mapping[str, Any], target: Target) -> str:
    prefix = batch_file_prefix(batch.narrowed_to(target.named_batch_columns))
    name = prefix + os.path.basename(str(content["file-path"]))
    folder = partition_path([field.name for field in target.fields], content["partition"])
    return "/".join(part for part in (target.data_location.rstrip("/"), folder, name) if part)
