"""PyIceberg's expressions as predicates, for people who plan with a table of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relayout.errors import UsageError
from relayout.table.literals import Counted
from relayout.table.predicates import Always, Both, Comparison, Either, Not, Predicate

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

_OPERATORS = {
    "LessThan": "lt",
    "LessThanOrEqual": "le",
    "GreaterThan": "gt",
    "GreaterThanOrEqual": "ge",
    "EqualTo": "eq",
    "NotEqualTo": "ne",
    "In": "in",
    "NotIn": "not_in",
    "StartsWith": "starts_with",
    "NotStartsWith": "not_starts_with",
    "IsNull": "is_null",
    "NotNull": "not_null",
    "IsNaN": "is_nan",
    "NotNaN": "not_nan",
}


def predicate_of(expression: BooleanExpression) -> Predicate:
    """The same condition in our own values; a dotted name leads into structs, as it does in PyIceberg."""
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, Or, UnboundPredicate
    from pyiceberg.expressions import Not as IcebergNot

    match expression:
        case AlwaysTrue() | AlwaysFalse():
            return Always(isinstance(expression, AlwaysTrue))
        case And():
            return Both((predicate_of(expression.left), predicate_of(expression.right)))
        case Or():
            return Either((predicate_of(expression.left), predicate_of(expression.right)))
        case IcebergNot():
            return Not(predicate_of(expression.child))
        case UnboundPredicate():
            return _comparison(expression)
    raise UsageError(
        f"{expression!r} is not a filter that can be planned with", where="filter", next="give an unbound expression"
    )


def _comparison(expression: Any) -> Comparison:
    literals = getattr(expression, "literals", None)
    if literals is None:
        literals = [expression.literal] if hasattr(expression, "literal") else []
    # A set has no order of its own; a plan must have one.
    values = sorted((_plain(literal) for literal in literals), key=repr)
    name = str(expression.term.name)
    return Comparison(tuple(name.split(".")), _OPERATORS[type(expression).__name__], tuple(values))


def _plain(literal: Any) -> Any:
    kind = type(literal).__name__
    if kind in ("DateLiteral", "TimeLiteral", "TimestampLiteral"):
        return Counted(literal.value)
    return literal.value
