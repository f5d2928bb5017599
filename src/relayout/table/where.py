"""Filters as people write them in Spark SQL, parsed into predicates; what a predicate cannot say is refused.

A filter chooses files, so it must be decidable from partition values and statistics: columns, and a few functions of
one column, compared with literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from relayout.errors import UsageError
from relayout.table.literals import Counted
from relayout.table.predicates import Always, Both, Comparison, Either, Not, Predicate
from relayout.table.transforms import Function

_EXAMPLE = "compare columns with literals, as in \"region = 'eu' AND year(ts) = 2024\""
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NullSafeEQ: "eq",
    exp.NEQ: "ne",
    exp.NullSafeNEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_PARTS: dict[type[exp.Expr], tuple[str, str]] = {
    # The function of numbers, and what is meant where it is compared with a date or its text.
    exp.Year: ("calendar_year", ""),
    exp.Month: ("month_of_year", ""),
    exp.Day: ("day_of_month", "day"),
    exp.DayOfMonth: ("day_of_month", ""),
    exp.Hour: ("hour_of_day", ""),
}
_TRANSFORMS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_WHOLE = re.compile(r"[0-9]+")
_QUOTED = re.compile(
    r"--[^\n]*|/\*.*?\*/|`(?:[^`]|``)*`|[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"",
    re.DOTALL,
)


def parse_where(text: str) -> Predicate:
    """The predicate that a filter in Spark SQL means; UsageError says what cannot be expressed."""
    clause = _clause_of(text)
    return _predicate(clause)


def _clause_of(text: str) -> exp.Expr:
    try:
        # Inside a query, because some function names would begin a statement where they stand first.
        parsed = parse("SELECT 1 FROM t WHERE " + _QUOTED.sub(_doubled_quotes, text), dialect="spark")
    except SqlglotError as error:
        raise UsageError(f"the filter is not valid SQL: {_message(error)}", where=text, next=_EXAMPLE) from None
    query = parsed[0] if len(parsed) == 1 else None
    if query is None or not isinstance(query, exp.Select) or not isinstance(query.args.get("where"), exp.Where):
        raise UsageError("the filter is not one condition", where=text, next=_EXAMPLE)
    extra = [name for name, value in query.args.items() if value and name not in ("expressions", "from_", "where")]
    if extra:
        raise UsageError(f"the filter goes on with {extra[0].rstrip('_')}", where=text, next="give the condition alone")
    return query.args["where"].this  # type: ignore[no-any-return]  # sqlglot leaves it open


def _doubled_quotes(found: re.Match[str]) -> str:
    """A doubled quote is one quote in Spark 4; sqlglot would join two texts."""
    quoted = found[0]
    mark = quoted[0]
    return mark + quoted[1:-1].replace(mark * 2, "\\" + mark) + mark if mark in "'\"" else quoted


def _message(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    return str(details[0]["description"]) if details else str(error).split("\n", 1)[0]


def _refused(node: exp.Expr, why: str, next: str = _EXAMPLE) -> UsageError:
    return UsageError(f"{node.sql(dialect='spark')}: {why}", where="filter", next=next)


def _predicate(node: exp.Expr) -> Predicate:
    match node:
        case exp.Paren():
            return _predicate(node.this)
        case exp.And() | exp.Or():
            kind = Both if isinstance(node, exp.And) else Either
            # A chain of the same word stays flat, however long it is.
            return kind(tuple(_predicate(part) for part in node.flatten(unnest=False)))
        case exp.Not():
            return Not(_predicate(node.this))
        case exp.Boolean():
            return Always(bool(node.this))
        case exp.Column() | exp.Dot():
            return Comparison(*_term(node, ())[:1], "eq", (True,))
        case _:
            found = _test(node)
            return Not(found) if node.args.get("negate") else found


def _test(node: exp.Expr) -> Predicate:
    if type(node) in _OPERATORS:
        return _comparison(node)
    match node:
        case exp.Is():
            return _is(node)
        case exp.In(expressions=items) if items and not node.args.get("query"):
            literals = tuple(_literal_or_refused(item) for item in items)
            path, function, literals = _term(node.this, literals)
            return Comparison(path, "in", literals, function)
        case exp.Between():
            low, high = (_literal_or_refused(node.args[end]) for end in ("low", "high"))
            path, function, (low, high) = _term(node.this, (low, high))
            return Both((Comparison(path, "ge", (low,), function), Comparison(path, "le", (high,), function)))
        case exp.Like():
            return _like(node)
        case exp.StartsWith():
            return Comparison(_term(node.this, ())[0], "starts_with", (_literal_or_refused(node.expression),))
        case exp.IsNan():
            return Comparison(_term(node.this, ())[0], "is_nan")
        case exp.Anonymous(this=name, expressions=[argument]) if name.lower() in ("isnull", "isnotnull", "isnan"):
            word = {"isnull": "is_null", "isnotnull": "not_null", "isnan": "is_nan"}[name.lower()]
            return Comparison(_term(argument, ())[0], word)
        case _:
            raise _refused(node, "files cannot be chosen by that")


def _comparison(node: exp.Expr) -> Predicate:
    left, right = node.args["this"], node.args["expression"]
    operator = _OPERATORS[type(node)]
    for side in (left, right):
        if isinstance(_unwrapped(side), exp.Null):
            other = right if side is left else left
            if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
                return Comparison(_term(other, ())[0], "is_null" if operator == "eq" else "not_null")
            raise _refused(node, "nothing is ever equal to NULL", "write IS NULL or IS NOT NULL")
    if _is_literal(left):
        left, right, operator = right, left, _MIRRORED[operator]
    if not _is_literal(right):
        raise _refused(node, "a column can only be compared with a literal")
    path, function, literals = _term(left, (_literal_or_refused(right),))
    return Comparison(path, operator, literals, function)


def _is(node: exp.Is) -> Predicate:
    path, function, _ = _term(node.this, ())
    if isinstance(node.expression, exp.Null):
        return Comparison(path, "is_null")
    if isinstance(node.expression, exp.Boolean) and function is None:
        return Comparison(path, "eq", (bool(node.expression.this),))
    raise _refused(node, "only IS NULL, IS TRUE and IS FALSE are understood")


def _like(node: exp.Like) -> Predicate:
    pattern = _literal_or_refused(node.expression)
    path = _term(node.this, ())[0]
    if not isinstance(pattern, str):
        raise _refused(node, "the pattern is not a text")
    text, wildcard = _like_prefix(pattern)
    if wildcard == "":
        return Comparison(path, "eq", (text,))
    if wildcard == "%" and text:
        return Comparison(path, "starts_with", (text,))
    raise _refused(node, "only a prefix can be looked up in bounds", "write a pattern such as LIKE 'abc%'")


def _like_prefix(pattern: str) -> tuple[str, str]:
    """The text before the first wildcard, and everything from there on."""
    text = ""
    place = 0
    while place < len(pattern) and pattern[place] not in "%_":
        place += pattern[place] == "\\" and place + 1 < len(pattern)
        text += pattern[place]
        place += 1
    return text, pattern[place:]


# Columns and functions of them.

_Term = tuple[tuple[str, ...], Function | None, tuple[Any, ...]]


def _term(node: exp.Expr, literals: tuple[Any, ...]) -> _Term:
    """The column's path, the function of it, and the literals in the form that this function is compared with."""
    node = _unwrapped(node)
    if (path := _path(node)) is not None:
        return path, None, literals
    if type(node) in _PARTS:
        number, date = _PARTS[type(node)]
        chosen = date if date and any(isinstance(literal, str) for literal in literals) else number
        inner = _unwrapped(node.this)
        return _column(inner.this if isinstance(inner, exp.TsOrDsToDate) else inner), Function(chosen), literals
    if isinstance(node, exp.TsOrDsToDate | exp.Date) or (
        isinstance(node, exp.Cast | exp.TryCast) and node.to.this == exp.DType.DATE
    ):
        return _column(node.this), Function("day"), literals
    if isinstance(node, exp.Left) or (isinstance(node, exp.Substring) and _number_in(node.args.get("start")) == 1):
        width = _number_in(node.args.get("length") or node.args.get("expression"))
        if width:
            return _column(node.this), Function("truncate", width), literals
    if isinstance(node, exp.Trunc):
        # What is meant is Iceberg's truncate; Spark has no function of this name.
        node = exp.Anonymous(this="truncate", expressions=[node.this, node.args.get("decimals")])
    if isinstance(node, exp.Dot):
        # Iceberg's own functions may be named with their catalog, as Spark does.
        node = node.expression
    if isinstance(node, exp.Anonymous):
        return _transform(node, literals)
    raise _refused(node, "a filter compares a column, or one of the functions it knows, with a literal")


def _transform(node: exp.Anonymous, literals: tuple[Any, ...]) -> _Term:
    name, arguments = str(node.this).lower(), list(node.expressions)
    if name in _TRANSFORMS and len(arguments) == 1:
        counted = tuple(Counted(value) if name == "days" and type(value) is int else value for value in literals)
        return _column(arguments[0]), Function(_TRANSFORMS[name]), counted
    if name in ("bucket", "truncate") and len(arguments) == 2:
        sizes = [size for size in map(_number_in, arguments) if size]
        columns = [argument for argument in arguments if _path(_unwrapped(argument)) is not None]
        if len(sizes) == len(columns) == 1:
            return _column(columns[0]), Function(name, sizes[0]), literals
    raise _refused(
        node,
        "this function is not understood",
        "use year, month, day, hour, years, months, days, hours, date, left, substring, bucket(N, c) or truncate(N, c)",
    )


def _column(node: exp.Expr) -> tuple[str, ...]:
    path = _path(_unwrapped(node))
    if path is None:
        raise _refused(node, "functions are understood of a column only")
    return path


def _path(node: exp.Expr) -> tuple[str, ...] | None:
    if isinstance(node, exp.Column):
        return tuple(part.name for part in node.parts)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        before = _path(node.this)
        return None if before is None else (*before, node.expression.name)
    return None


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _number_in(node: exp.Expr | None) -> int:
    """A whole number that is written out, or 0."""
    whole = isinstance(node, exp.Literal) and not node.is_string and _WHOLE.fullmatch(node.name)
    return int(node.name) if node is not None and whole else 0


# Literals.

_CASTS: dict[exp.DType, Callable[[str], Any]] = {
    **dict.fromkeys((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT), int),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE), float),
    exp.DType.DECIMAL: Decimal,
    **dict.fromkeys(
        (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ),
        str,
    ),
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR), str),
}


def _is_literal(node: exp.Expr) -> bool:
    node = _unwrapped(node)
    if isinstance(node, exp.Neg | exp.Cast | exp.TryCast):
        return _is_literal(node.this)
    if isinstance(node, exp.Concat):
        return all(isinstance(part, exp.Literal) for part in node.expressions)
    return isinstance(node, exp.Literal | exp.Boolean | exp.HexString | exp.RawString)


def _literal_or_refused(node: exp.Expr) -> Any:
    node = _unwrapped(node)
    try:
        match node:
            case exp.Literal():
                return node.name if node.is_string else _number(node.name)
            case exp.Neg(this=exp.Literal(is_string=False) | exp.Cast() | exp.TryCast() as inner):
                return -_literal_or_refused(inner)
            case exp.Boolean():
                return bool(node.this)
            case exp.HexString():
                return bytes.fromhex(node.name)
            case exp.RawString():
                return node.name
            case exp.Concat():
                return "".join(str(_literal_or_refused(part)) for part in node.expressions)
            case exp.Cast() | exp.TryCast() if node.to.this in _CASTS and _is_literal(node.this):
                return _CASTS[node.to.this](str(_literal_or_refused(node.this)))
            case exp.Null():
                raise _refused(node, "NULL in a list never matches", "write IS NULL beside it")
    except (ValueError, ArithmeticError, TypeError) as error:
        if isinstance(error, UsageError):
            raise
        raise _refused(node, "the literal does not parse") from None
    raise _refused(node, "a column can only be compared with a literal")


def _number(text: str) -> int | Decimal:
    return int(text) if _WHOLE.fullmatch(text) else Decimal(text)
