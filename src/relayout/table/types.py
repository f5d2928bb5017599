"""Types as canonical Iceberg text: the one door to spellings, conversions and values, and the algebra of types."""

from __future__ import annotations

from relayout.table.scalars import Dialect, from_text, plain, sql_literal
from relayout.table.type_spellings import (
    arrow_type,
    duckdb_type,
    from_arrow,
    from_duckdb_structure,
    iceberg_type,
    spark_type,
    text_of,
)
from relayout.table.type_tree import List, Map, Node, Primitive, Struct, decimal, parse_node, parse_type, text_of_node

__all__ = [
    "Dialect",
    "arrow_type",
    "duckdb_type",
    "evolved",
    "from_arrow",
    "from_duckdb_structure",
    "from_text",
    "iceberg_type",
    "is_primitive",
    "merged",
    "parse_type",
    "plain",
    "promotable",
    "spark_type",
    "sql_literal",
    "text_of",
    "with_sorted_fields",
    "without_null",
]

_NULL = Primitive("null")
_INTEGER_DIGITS = {"int": 10, "long": 19}
_FLOATING = ("float", "double")
_WIDER = {("int", "long"), ("float", "double")}
_HOLDS = {
    ("long", "int"),
    ("double", "int"),
    ("double", "long"),
    ("double", "float"),
    ("timestamp_ns", "timestamp"),
    ("timestamptz_ns", "timestamptz"),
    ("binary", "fixed"),
}


def is_primitive(text: str) -> bool:
    """Whether values of the type have no parts, so that they can be keys."""
    return isinstance(parse_node(text), Primitive)


def without_null(text: str, default: str = "string") -> str:
    """The type with every `null` in it settled as `default`, for tables that need a type before a value came."""
    return text_of_node(_settled(parse_node(text), parse_node(default)))


def _settled(node: Node, default: Node) -> Node:
    match node:
        case Struct(fields):
            return Struct(tuple((name, _settled(type, default)) for name, type in fields))
        case List(element):
            return List(_settled(element, default))
        case Map(key, value):
            return Map(_settled(key, default), _settled(value, default))
        case _:
            return default if node == _NULL else node


def with_sorted_fields(text: str) -> str:
    """The type with the fields of every struct in name order: equal for types that differ in nothing else."""
    return text_of_node(_sorted(parse_node(text)))


def _sorted(node: Node) -> Node:
    match node:
        case Struct(fields):
            return Struct(tuple(sorted(((name, _sorted(type)) for name, type in fields), key=lambda field: field[0])))
        case List(element):
            return List(_sorted(element))
        case Map(key, value):
            return Map(_sorted(key), _sorted(value))
        case Primitive():
            return node


def merged(first: str, second: str) -> str | None:
    """The type that two files' inferred types both fit into, None when there is none.

    Idempotent and associative; commutative but for the order of struct fields, which is the order of appearance.
    """
    both = _merged(parse_node(first), parse_node(second))
    return None if both is None else text_of_node(both)


def _merged(first: Node, second: Node) -> Node | None:
    if first == second or second == _NULL:
        return first
    if first == _NULL:
        return second
    match first, second:
        case Primitive(), Primitive():
            return _merged_primitives(first, second)
        case Struct(), Struct():
            return _merged_structs(first, second)
        case List(), List():
            element = _merged(first.element, second.element)
            return None if element is None else List(element)
        case Map(), Map():
            key, value = _merged(first.key, second.key), _merged(first.value, second.value)
            return None if key is None or value is None else Map(key, value)
        case _:
            return None


def _merged_primitives(first: Primitive, second: Primitive) -> Primitive | None:
    names = {first.name, second.name}
    exact = _INTEGER_DIGITS.keys() | {"decimal"}
    if names <= exact:
        return Primitive("long") if "decimal" not in names else _covering(first, second)
    # Decimals and floating numbers stay apart: whichever won, digits would be lost in silence.
    if names <= {*_INTEGER_DIGITS, *_FLOATING}:
        return Primitive("double")
    if names <= {"fixed", "binary"}:
        return Primitive("binary")
    for coarse, fine in (("timestamp", "timestamp_ns"), ("timestamptz", "timestamptz_ns")):
        if names == {coarse, fine}:
            return Primitive(fine)
    return None


def _covering(first: Primitive, second: Primitive) -> Primitive | None:
    """The smallest decimal that holds two exact number types, None beyond 38 digits."""
    scale = max(_scale(first), _scale(second))
    digits = max(_whole_digits(first), _whole_digits(second))
    try:
        return decimal(digits + scale, scale)
    except ValueError:
        return None


def _scale(type: Primitive) -> int:
    return type.args[1] if type.name == "decimal" else 0


def _whole_digits(type: Primitive) -> int:
    return type.args[0] - type.args[1] if type.name == "decimal" else _INTEGER_DIGITS[type.name]


def _merged_structs(first: Struct, second: Struct) -> Struct | None:
    fields: dict[str, Node] = dict(first.fields)
    for name, type in second.fields:
        both = _merged(fields.get(name, _NULL), type)
        if both is None:
            return None
        fields[name] = both
    return _distinguishable(fields)


def _distinguishable(fields: dict[str, Node]) -> Struct | None:
    # Spark and DuckDB cannot tell names apart that differ in case only.
    if len({name.lower() for name in fields}) < len(fields):
        return None
    return Struct(tuple(fields.items()))


def promotable(old: str, new: str) -> bool:
    """Whether Iceberg lets a column of the old type become one of the new type (equal types included).

    Structs may gain fields and never lose any; map keys may not gain fields.
    """
    return _promotable(parse_node(old), parse_node(new))


def _promotable(old: Node, new: Node) -> bool:
    match old, new:
        case Primitive("decimal", (precision, scale)), Primitive("decimal", (wider, same)):
            return scale == same and precision <= wider
        case Primitive(), Primitive():
            return old in (new, _NULL) or (old.name, new.name) in _WIDER
        case Struct(), Struct():
            kept = dict(new.fields)
            return all(name in kept and _promotable(type, kept[name]) for name, type in old.fields)
        case List(), List():
            return _promotable(old.element, new.element)
        case Map(), Map():
            return old.key == new.key and _promotable(old.value, new.value)
        case _:
            return old == _NULL


def evolved(current: str, wanted: str, *, wanted_is_text: bool = False) -> str | None:
    """The type a table's column must get so that it holds what it has and what is wanted, by safe promotions only.

    It is `current` where the wanted values fit already (a long into a double column, say), None when nothing safe
    helps. `wanted_is_text` says that the wanted type was read out of text (CSV), which any string column can keep.
    """
    target = _evolved(parse_node(current), parse_node(wanted), wanted_is_text)
    return None if target is None else text_of_node(target)


def _evolved(current: Node, wanted: Node, wanted_is_text: bool) -> Node | None:
    if current == wanted or wanted == _NULL:
        return current
    if current == _NULL:
        return wanted
    match current, wanted:
        case Primitive(), Primitive():
            return _evolved_primitive(current, wanted, wanted_is_text)
        case Struct(), Struct():
            fields: dict[str, Node] = dict(current.fields)
            for name, type in wanted.fields:
                field = _evolved(fields.get(name, _NULL), type, wanted_is_text)
                if field is None:
                    return None
                fields[name] = field
            return _distinguishable(fields)
        case List(), List():
            element = _evolved(current.element, wanted.element, wanted_is_text)
            return None if element is None else List(element)
        case Map(), Map() if current.key == wanted.key:
            value = _evolved(current.value, wanted.value, wanted_is_text)
            return None if value is None else Map(current.key, value)
        case _:
            return None


def _evolved_primitive(current: Primitive, wanted: Primitive, wanted_is_text: bool) -> Primitive | None:
    if (current.name, wanted.name) in _WIDER:
        return wanted
    if (current.name, wanted.name) in _HOLDS or (wanted_is_text and current.name == "string"):
        return current
    if current.name == "decimal" and wanted.name in {*_INTEGER_DIGITS, "decimal"}:
        return _covering(current, wanted) if _scale(wanted) <= _scale(current) else None
    return None
