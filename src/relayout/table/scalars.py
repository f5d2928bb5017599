"""Single values: from engines and path texts to the plain form of batch keys, and on into SQL.

Plain form is what JSON can hold and `==` can compare: numbers and booleans as they are, everything else as one
canonical text. Both `plain` and `from_text` are idempotent, and `-0.0`, NaN and time zones have one spelling each.
"""

from __future__ import annotations

import math
import re
import struct
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Literal

from relayout.errors import UsageError
from relayout.table.batches import Scalar
from relayout.table.type_spellings import duckdb_type, spark_type
from relayout.table.type_tree import Node, Primitive, parse_node

Dialect = Literal["spark", "duckdb"]

_RANGES = {"int": 31, "long": 63}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_NOT_NUMBERS = {"nan": "NaN", "inf": "Infinity", "infinity": "Infinity", "-inf": "-Infinity", "-infinity": "-Infinity"}
# Characters that mean the same under every setting of Spark's parser; `$` would start a variable substitution.
_SPARK_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f'\"\\$`\u2028\u2029]*")


def plain(value: Any, type: str) -> Scalar:
    """A Python, NumPy or Arrow value as a plain key value of the given type; UsageError when it does not fit."""
    try:
        return _plain(_python_value(value), _primitive(type))
    except (ValueError, ArithmeticError) as problem:
        raise UsageError(
            f"{value!r} is not a value of type {type}: {problem}", next="check the column's type"
        ) from None


def from_text(text: str | None, type: str) -> Scalar:
    """What a path or an option says, as a plain key value; None stays null, ValueError when it does not parse."""
    if text is None:
        return None
    try:
        return _parsed(text, _primitive(type))
    except (ValueError, ArithmeticError) as problem:
        raise ValueError(f"{text!r} is not a value of type {type}: {problem}") from None


def partition_json(value: Scalar, kind: str) -> Scalar:
    """A plain value in the spec's JSON form (https://iceberg.apache.org/spec/#json-single-value-serialization)."""
    if isinstance(value, str) and kind in ("float", "double"):
        return float(value)
    if isinstance(value, str) and kind == "timestamp":
        return value.replace(" ", "T")
    if isinstance(value, str) and kind == "timestamptz":
        text = value.replace(" ", "T")
        return text + ":00" if text[-3] in "+-" else text
    return value


def sql_literal(value: Scalar, type: str, dialect: Dialect) -> str:
    """A plain value as SQL text of exactly that type; no value can end the literal early."""
    sql_type = duckdb_type(type) if dialect == "duckdb" else spark_type(type)
    if value is None:
        return f"CAST(NULL AS {sql_type})"
    checked = plain(value, type)
    if isinstance(checked, bool):
        return "TRUE" if checked else "FALSE"
    if isinstance(checked, int):
        return f"CAST({checked} AS {sql_type})"
    name = _primitive(type).name
    text = repr(checked) if isinstance(checked, float) else str(checked)
    if name in ("binary", "fixed"):
        return f"unhex('{text}')" if dialect == "duckdb" else f"X'{text}'"
    if dialect == "duckdb":
        return "CAST('" + _encodable(text).replace("'", "''") + f"' AS {sql_type})"
    return _spark_string(text) if sql_type == "STRING" else f"CAST('{text}' AS {sql_type})"


def _spark_string(text: str) -> str:
    encoded = _encodable(text).encode()
    if _SPARK_PLAIN.fullmatch(text):
        return f"'{text}'"
    # How Spark reads quotes and backslashes depends on its settings; bytes mean the same under all of them.
    return f"CAST(X'{encoded.hex().upper()}' AS STRING)"


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} is not valid Unicode text", next="rename the file or correct the value") from None
    return text


def _primitive(type: str) -> Primitive:
    node: Node = parse_node(type)
    if not isinstance(node, Primitive):
        raise ValueError("only values without parts can be keys")
    return node


def _python_value(value: Any) -> Any:
    for method in ("as_py", "item"):
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    return value


def _plain(value: Any, type: Primitive) -> Scalar:
    if value is None:
        return None
    if isinstance(value, str):
        return _parsed(value, type)
    name = type.name
    if name == "boolean" and isinstance(value, bool):
        return value
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _number(value, type)
    if name == "date" and isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if name == "time" and isinstance(value, time) and value.tzinfo is None:
        return value.isoformat()
    if name.startswith("timestamp") and isinstance(value, datetime):
        return _moment_text(value, getattr(value, "nanosecond", 0), name)
    if name == "uuid" and isinstance(value, uuid.UUID | bytes):
        return str(uuid.UUID(bytes=value) if isinstance(value, bytes) else value)
    if name in ("binary", "fixed") and isinstance(value, bytes | bytearray | memoryview):
        return _checked_hex(bytes(value).hex(), type)
    raise ValueError(f"{value.__class__.__name__} does not belong there")


def _number(value: int | float | Decimal, type: Primitive) -> Scalar:
    if type.name in _RANGES and isinstance(value, int):
        return _in_range(value, type.name)
    if type.name in ("float", "double") and isinstance(value, int | float):
        return _floating(float(value), type.name)
    if type.name == "decimal" and isinstance(value, int | Decimal):
        return _decimal_text(Decimal(value), type)
    raise ValueError(f"{value.__class__.__name__} does not belong there")


def _parsed(text: str, type: Primitive) -> Scalar:
    match type.name:
        case "string":
            return text
        case "boolean":
            if text.lower() not in ("true", "false"):
                raise ValueError("neither true nor false")
            return text.lower() == "true"
        case "int" | "long":
            if not _INTEGER.fullmatch(text):
                raise ValueError("not a whole number")
            return _in_range(int(text), type.name)
        case "float" | "double":
            named = _NOT_NUMBERS.get(text.lower())
            if named is None and not _NUMBER.fullmatch(text):
                raise ValueError("not a number")
            return _floating(float(named or text), type.name)
        case "decimal":
            if not _NUMBER.fullmatch(text):
                raise ValueError("not a number")
            return _decimal_text(Decimal(text), type)
        case "uuid":
            return str(uuid.UUID(text))
        case "binary" | "fixed":
            return _checked_hex(text, type)
        case _:
            return _parsed_time(text, type.name)


def _parsed_time(text: str, name: str) -> str:
    if name == "date":
        if not _DATE.fullmatch(text):
            raise ValueError("dates are written YYYY-MM-DD")
        return date.fromisoformat(text).isoformat()
    if name == "time":
        moment = time.fromisoformat(text)
        if moment.tzinfo is not None:
            raise ValueError("a time of day has no zone")
        return moment.isoformat()
    if not name.startswith("timestamp"):
        raise ValueError("nothing but null fits")
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError("timestamps are written YYYY-MM-DDTHH:MM:SS")
    fraction = (found["fraction"] or "").ljust(9, "0")
    whole = datetime.fromisoformat(f"{found['date']}T{found['clock'] or '00:00'}")
    moment_in_zone = whole.replace(microsecond=int(fraction[:6]), tzinfo=_zone(found["zone"], name))
    return _moment_text(moment_in_zone, int(fraction[6:]), name)


def _zone(text: str | None, name: str) -> timezone | None:
    if "tz" in name and text in (None, "Z"):
        return UTC
    if text is None:
        return None
    if text == "Z":
        return UTC
    sign = -1 if text[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(text[1:3]), minutes=int(text[-2:])))


def _moment_text(value: datetime, nanoseconds: int, name: str) -> str:
    zoned = "tz" in name
    if zoned != (value.tzinfo is not None):
        raise ValueError("it has no time zone" if zoned else "it has a time zone")
    if nanoseconds and not name.endswith("_ns"):
        raise ValueError("it is finer than microseconds")
    moment = value.astimezone(UTC) if zoned else value
    text = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T"
    text += f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
    if nanoseconds:
        text += f".{moment.microsecond:06d}{nanoseconds:03d}"
    elif moment.microsecond:
        text += f".{moment.microsecond:06d}"
    return text + ("+00:00" if zoned else "")


def _in_range(value: int, name: str) -> int:
    bits = _RANGES[name]
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError(f"it does not fit into {bits + 1} bits")
    return value


def _floating(value: float, name: str) -> Scalar:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if name == "float":
        (value,) = struct.unpack("<f", struct.pack("<f", value))
    # SQL finds 0.0 = -0.0, so keys must too.
    return value + 0.0


def _decimal_text(value: Decimal, type: Primitive) -> str:
    precision, scale = type.args
    with localcontext(prec=60):
        try:
            scaled = value.quantize(Decimal(1).scaleb(-scale))
        except InvalidOperation:
            raise ValueError("it has too many digits") from None
        if scaled != value or len(scaled.as_tuple().digits) > precision:
            raise ValueError("it has too many digits")
        return f"{abs(scaled) if scaled == 0 else scaled:f}"


def _checked_hex(text: str, type: Primitive) -> str:
    if not re.fullmatch(r"(?:[0-9a-fA-F]{2})*", text):
        raise ValueError("bytes are written as pairs of hexadecimal digits")
    if type.args and len(text) != 2 * type.args[0]:
        raise ValueError(f"it is not {type.args[0]} bytes long")
    return text.lower()
