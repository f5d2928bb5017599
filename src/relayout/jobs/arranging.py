"""From what a plan says of the order of rows to what kernels do: sort terms, or a curve over columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relayout.compact.plan import Arrangement
from relayout.errors import UsageError
from relayout.kernels.order import Curve
from relayout.table.layouts import SortField
from relayout.table.names import quote_duckdb
from relayout.table.schemas import TableSchema
from relayout.table.types import duckdb_type, is_primitive

MOST_CURVE_COLUMNS = 8
"""More of them leave so few bits to each that none of them skips anything."""


def curve_of(arrangement: Arrangement, by: Sequence[str], schema: TableSchema) -> Curve | None:
    """The curve or sort order over these columns; UsageError where they cannot make one."""
    if arrangement is Arrangement.BINPACK:
        return None
    kinds = {column.name.lower(): (column.name, column.type) for column in schema}
    columns = []
    for text in by:
        name = SortField.parse(text).column if arrangement is Arrangement.SORT else text.strip()
        columns.append(_column(name, kinds))
    names = [name for name, _ in columns]
    if not columns or len(set(names)) < len(names) or len(columns) > MOST_CURVE_COLUMNS:
        raise UsageError(
            f"{arrangement.value} takes 1 to {MOST_CURVE_COLUMNS} different columns",
            where=", ".join(by),
            next="name each column that queries filter by once, the most frequent one first",
        )
    return Curve(arrangement.value, tuple((name, duckdb_type(kind)) for name, kind in columns))


def _column(name: str, kinds: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    found = kinds.get(name.lower())
    if found is None or not is_primitive(found[1]):
        raise UsageError(
            f"rows cannot be ordered by {name!r}" + ("" if found is None else f", it is {found[1]}"),
            where="the columns to order by",
            next="the table has " + ", ".join(told for told, kind in kinds.values() if is_primitive(kind)),
        )
    return found


def sort_terms(by: Sequence[str], schema: TableSchema) -> tuple[str, ...]:
    """What DuckDB sorts by, in the table's own spelling of the columns."""
    spelt = {column.name.lower(): column.name for column in schema}
    terms = []
    for text in by:
        field = SortField.parse(text)
        way = "DESC" if field.descending else "ASC"
        nulls = "FIRST" if field.nulls_first else "LAST"
        terms.append(f"{quote_duckdb(spelt[field.column.lower()])} {way} NULLS {nulls}")
    return tuple(terms)


def one_order(**orders: str | None) -> dict[str, Any]:
    """Options of a rewrite with the one order that was asked for, columns parted by commas; every file takes part."""
    told = [(kind, text) for kind, text in orders.items() if text is not None]
    if len(told) != 1:
        raise UsageError(
            "optimize takes one order of rows",
            where="optimize",
            next="say one of --zorder a,b, --hilbert a,b and --sort a,b",
        )
    kind, text = told[0]
    return arranged(kind, [part.strip() for part in text.split(",")])


def arranged(arrangement: str, by: Sequence[str]) -> dict[str, Any]:
    """Options of a rewrite that orders the rows of every file anew."""
    return {"rewrite_all": True, "arrangement": arrangement, "arrange_by": tuple(by)}
