"""Query results as an aligned table, as CSV or as JSON, piece by piece, so that any number of rows can be printed.

Pieces end with their newline. The first rows are read before the first piece is given, so that a query that fails does
so before anything is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice

from relayout.report.columns import GAP, fitted, line_of, widths_of
from relayout.report.json_text import json_line, json_value
from relayout.report.printable import printable

MEASURED_ROWS = 1_000
"""So many rows decide how wide the columns of a table are; a wider cell further down pushes its line out."""

_QUOTED = re.compile(r'[",\r\n]|^$')
_NULL = "NULL"

Row = Sequence[object]


def rows_table(columns: Sequence[str], rows: Iterable[Row], width: int | None = None) -> Iterator[str]:
    """Columns side by side, numbers to the right, nulls as NULL; with a `width`, wide cells are cut to fit into it.

    A statement without columns gives nothing.
    """
    rest = iter(rows)
    measured = list(islice(rest, MEASURED_ROWS))
    if not columns:
        return
    titles = [printable(name) for name in columns]
    widths = widths_of([titles, *(_table_cells(row) for row in measured)])
    if width is not None:
        widths = fitted(widths, width)
    numeric = [place for place in range(len(columns)) if _is_numeric(row[place] for row in measured)]
    yield line_of(titles, widths, numeric) + "\n"
    yield GAP.join("-" * cells for cells in widths) + "\n"
    for row in chain(measured, rest):
        texts = _table_cells(row)
        room = widths if width is not None else [max(pair) for pair in zip(widths, widths_of([texts]), strict=True)]
        yield line_of(texts, room, numeric) + "\n"


def rows_csv(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """A header line, then a line per row; null is empty, the empty text is `""`.

    Quoted as RFC 4180 says; lines end with a plain newline, as other tools beside it expect.
    """
    started = _started(rows)
    if columns:
        yield _csv_line(columns)
    for row in started:
        yield _csv_line(row)


def rows_json(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """One document with `columns` and `rows`; each row stands on a line of its own."""
    started = _started(rows)
    yield f'{{"schema": 1, "columns": {json_line(list(columns))}, "rows": ['
    ending = "\n"
    for row in started:
        yield ending + json_line(list(row))
        ending = ",\n"
    yield "]}\n" if ending == "\n" else "\n]}\n"


def cell_text(value: object) -> str:
    """A value as one text: as JSON has it, without the quotes of a text."""
    plain = json_value(value)
    return plain if isinstance(plain, str) else json_line(plain)


def _started(rows: Iterable[Row]) -> Iterator[Row]:
    rest = iter(rows)
    return chain(list(islice(rest, 1)), rest)


def _table_cells(row: Row) -> list[str]:
    return [_NULL if value is None else printable(cell_text(value)) for value in row]


def _is_numeric(values: Iterable[object]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in present
    )


def _csv_line(row: Row) -> str:
    return ",".join("" if value is None else _csv_cell(cell_text(value)) for value in row) + "\n"


def _csv_cell(text: str) -> str:
    # The csv module of Python 3.11 cannot tell null from the empty text; the rule for quotes is short enough.
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text
