"""One type in the words of each engine: DuckDB, Spark, Arrow, PyIceberg; and back.

Nothing is narrowed in silence: a type that an engine cannot hold is a UsageError naming both.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from relayout.errors import UsageError
from relayout.table.names import quote_duckdb, quote_spark
from relayout.table.type_tree import List, Map, Node, Primitive, Struct, decimal, parse_node, text_of_node

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.types import IcebergType

_DUCKDB = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamptz_ns": "TIMESTAMPTZ_NS",
    "string": "VARCHAR",
    "uuid": "UUID",
    "binary": "BLOB",
    "fixed": "BLOB",
    "null": '"NULL"',
}
_SPARK = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "string": "STRING",
    # Iceberg's Spark integration shows both of these as their plain forms.
    "uuid": "STRING",
    "fixed": "BINARY",
    "binary": "BINARY",
    "null": "VOID",
}
_SPARK_SUBSTITUTES = {"time": "string", "timestamp_ns": "timestamp", "timestamptz_ns": "timestamptz"}


def duckdb_type(text: str) -> str:
    """The type as DuckDB SQL writes it."""
    return _duckdb(parse_node(text))


def _duckdb(node: Node) -> str:
    match node:
        case Primitive("decimal", (precision, scale)):
            return f"DECIMAL({precision},{scale})"
        case Primitive(name):
            return _DUCKDB[name]
        case Struct(fields):
            return "STRUCT(" + ", ".join(f"{quote_duckdb(name)} {_duckdb(type)}" for name, type in fields) + ")"
        case List(element):
            return f"{_duckdb(element)}[]"
        case Map(key, value):
            return f"MAP({_duckdb(key)}, {_duckdb(value)})"


def spark_type(text: str) -> str:
    """The type as Spark DDL writes it; Iceberg's `timestamp` is TIMESTAMP_NTZ there and `timestamptz` TIMESTAMP."""
    return _spark(parse_node(text))


def _spark(node: Node) -> str:
    match node:
        case Primitive("decimal", (precision, scale)):
            return f"DECIMAL({precision},{scale})"
        case Primitive(name) if name in _SPARK_SUBSTITUTES:
            raise UsageError(
                f"Spark has no type for {name}",
                next=f"declare the column as {_SPARK_SUBSTITUTES[name]} in the table's schema",
            )
        case Primitive(name):
            return _SPARK[name]
        case Struct(fields):
            return "STRUCT<" + ", ".join(f"{quote_spark(name)}: {_spark(type)}" for name, type in fields) + ">"
        case List(element):
            return f"ARRAY<{_spark(element)}>"
        case Map(key, value):
            return f"MAP<{_spark(key)}, {_spark(value)}>"


def arrow_type(text: str) -> pa.DataType:
    """The type as Arrow holds it: microseconds, UTC, 32-bit string offsets."""
    return _arrow(parse_node(text))


def _arrow(node: Node) -> pa.DataType:
    import pyarrow as pa

    match node:
        case Primitive("decimal", (precision, scale)):
            return pa.decimal128(precision, scale)
        case Primitive("fixed", (length,)):
            return pa.binary(length)
        case Primitive(name):
            plain: dict[str, pa.DataType] = {
                "boolean": pa.bool_(),
                "int": pa.int32(),
                "long": pa.int64(),
                "float": pa.float32(),
                "double": pa.float64(),
                "date": pa.date32(),
                "time": pa.time64("us"),
                "timestamp": pa.timestamp("us"),
                "timestamptz": pa.timestamp("us", "UTC"),
                "timestamp_ns": pa.timestamp("ns"),
                "timestamptz_ns": pa.timestamp("ns", "UTC"),
                "string": pa.string(),
                "uuid": pa.uuid(),
                "binary": pa.binary(),
                "null": pa.null(),
            }
            return plain[name]
        case Struct(fields):
            return pa.struct([pa.field(name, _arrow(type)) for name, type in fields])
        case List(element):
            return pa.list_(pa.field("element", _arrow(element)))
        case Map(key, value):
            return pa.map_(_arrow(key), _arrow(value))


def from_arrow(type: pa.DataType) -> str:
    """The narrowest Iceberg type that holds every value of an Arrow type."""
    return text_of_node(_from_arrow(type))


def _from_arrow(type: pa.DataType) -> Node:
    import pyarrow as pa
    from pyarrow import types as is_

    if is_.is_struct(type):
        return Struct(tuple((field.name, _from_arrow(field.type)) for field in type))
    if is_.is_map(type):
        return Map(_from_arrow(type.key_type), _from_arrow(type.item_type))
    if (
        is_.is_list(type)
        or is_.is_large_list(type)
        or is_.is_fixed_size_list(type)
        or is_.is_list_view(type)
        or is_.is_large_list_view(type)
    ):
        return List(_from_arrow(type.value_type))
    if is_.is_dictionary(type) or is_.is_run_end_encoded(type):
        return _from_arrow(type.value_type)
    if is_.is_decimal(type):
        return _decimal_from_arrow(type)
    if is_.is_timestamp(type):
        return Primitive("timestamp" + ("tz" if type.tz else "") + ("_ns" if type.unit == "ns" else ""))
    if is_.is_fixed_size_binary(type) and not isinstance(type, pa.BaseExtensionType):
        return Primitive("fixed", (type.byte_width,))
    name = _SIMPLE_FROM_ARROW.get(str(type))
    if name is not None:
        return parse_node(name)
    if isinstance(type, pa.BaseExtensionType):
        return Primitive("uuid") if type.extension_name == "arrow.uuid" else _from_arrow(type.storage_type)
    raise UsageError(f"no Iceberg type holds {type} values", next="convert the column before relayout reads it")


_SIMPLE_FROM_ARROW = {
    "null": "null",
    "bool": "boolean",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "uint8": "int",
    "uint16": "int",
    "uint32": "long",
    "uint64": "decimal(20,0)",
    "halffloat": "float",
    "float": "float",
    "double": "double",
    "date32[day]": "date",
    "date64[ms]": "date",
    "time32[s]": "time",
    "time32[ms]": "time",
    "time64[us]": "time",
    "time64[ns]": "time",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
}


def _decimal_from_arrow(type: Any) -> Node:
    # A negative scale counts zeros before the point; Iceberg writes those out as digits.
    precision, scale = (type.precision - type.scale, 0) if type.scale < 0 else (type.precision, type.scale)
    try:
        return decimal(max(precision, scale), scale)
    except ValueError as problem:
        raise UsageError(f"no Iceberg type holds {type} values: {problem}", next="reduce the precision") from None


def from_duckdb_structure(value: Any) -> str:
    """The type of one value of DuckDB's `json_group_structure`, as its JSON text or already decoded.

    Every JSON integer is `long`: DuckDB's own choice (UBIGINT, HUGEINT) tells signs, not sizes, and a number that
    does not fit fails when it is read. What DuckDB calls JSON (mixed kinds, or nothing but `{}`) is `string`.
    """
    if isinstance(value, str) and value[:1] in ('"', "{", "["):
        value = json.loads(value)
    return text_of_node(_from_structure(value))


_FROM_STRUCTURE = {
    "NULL": "null",
    "BOOLEAN": "boolean",
    "BIGINT": "long",
    "UBIGINT": "long",
    "HUGEINT": "long",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "JSON": "string",
}


def _from_structure(value: Any) -> Node:
    if isinstance(value, dict):
        return Struct(tuple((name, _from_structure(type)) for name, type in value.items()))
    if isinstance(value, list) and len(value) == 1:
        return List(_from_structure(value[0]))
    if isinstance(value, str):
        known = _FROM_STRUCTURE.get(value)
        return Primitive(known) if known else parse_node(value)
    raise UsageError(f"{value!r} is not a structure that DuckDB describes")


def iceberg_type(text: str) -> IcebergType:
    """The type as PyIceberg holds it; all nested fields are optional and carry placeholder ids, unique within it."""
    return _iceberg(parse_node(text), itertools.count(1))


def _iceberg(node: Node, ids: Iterator[int]) -> IcebergType:
    from pyiceberg import types as iceberg

    match node:
        case Primitive("decimal", (precision, scale)):
            return iceberg.DecimalType(precision, scale)
        case Primitive("fixed", (length,)):
            return iceberg.FixedType(length)
        case Primitive(name):
            plain: dict[str, IcebergType] = {
                "boolean": iceberg.BooleanType(),
                "int": iceberg.IntegerType(),
                "long": iceberg.LongType(),
                "float": iceberg.FloatType(),
                "double": iceberg.DoubleType(),
                "date": iceberg.DateType(),
                "time": iceberg.TimeType(),
                "timestamp": iceberg.TimestampType(),
                "timestamptz": iceberg.TimestamptzType(),
                "timestamp_ns": iceberg.TimestampNanoType(),
                "timestamptz_ns": iceberg.TimestamptzNanoType(),
                "string": iceberg.StringType(),
                "uuid": iceberg.UUIDType(),
                "binary": iceberg.BinaryType(),
                "null": iceberg.UnknownType(),
            }
            return plain[name]
        case Struct(fields):
            return iceberg.StructType(
                *(iceberg.NestedField(next(ids), name, _iceberg(type, ids), required=False) for name, type in fields)
            )
        case List(element):
            return iceberg.ListType(next(ids), _iceberg(element, ids), element_required=False)
        case Map(key, value):
            return iceberg.MapType(next(ids), _iceberg(key, ids), next(ids), _iceberg(value, ids), value_required=False)


def text_of(type: IcebergType) -> str:
    """The canonical text of a PyIceberg type; ids and nested requiredness are left out."""
    return text_of_node(_from_iceberg(type))


def _from_iceberg(type: IcebergType) -> Node:
    from pyiceberg import types as iceberg

    match type:
        case iceberg.StructType():
            return Struct(tuple((field.name, _from_iceberg(field.field_type)) for field in type.fields))
        case iceberg.ListType():
            return List(_from_iceberg(type.element_type))
        case iceberg.MapType():
            return Map(_from_iceberg(type.key_type), _from_iceberg(type.value_type))
        case iceberg.GeometryType() | iceberg.GeographyType():
            raise UsageError(f"relayout does not handle {type} columns", next="leave the column out of this table")
        case _:
            return parse_node(str(type))
