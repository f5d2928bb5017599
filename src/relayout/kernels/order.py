"""Z-order and Hilbert curves over ranks: where a row stands among the sampled values of each column.

Ranks make a curve indifferent to skew, to the spread of numbers and to common prefixes of texts: each step of a rank
holds about as many rows as any other. Nulls come last in every column. A key only says where a row goes, never what it
is, so nothing here can change a row.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.table.names import quote_duckdb

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import pyarrow as pa

    Numbers = np.ndarray[Any, Any]

KEY_BITS = 63
"""Keys are signed 64-bit numbers that are never negative."""

MOST_BITS = 12
"""Per column; a rank is never finer than what its sample can tell."""

SAMPLED_ROWS = 100_000

AS_TEXT = ("UUID", "TIME")
"""Types whose text has the order of their values and that Arrow hands to Python in a form of its own."""

LONGEST_TEXT_BYTES = 128
"""How far texts are compared behind their common prefix; equal ranks cost a little order and nothing else."""


def bits_for(columns: int) -> int:
    """How many bits of each column's rank go into a key."""
    return min(MOST_BITS, KEY_BITS // columns)


class Ranker:
    """Ranks of one column's values, from a sample of them: 0 for the least, the highest one for nulls.

    Bounds are quantiles of the sample's rows, each value once, so that a frequent value takes one rank and the values
    around it share the others evenly.
    """

    def __init__(self, sample: pa.Array | pa.ChunkedArray, bits: int) -> None:
        import numpy as np

        self.top = (1 << bits) - 1
        self._prefix = _common_prefix(sample)
        values = np.sort(self._comparable(sample.drop_null()))
        steps = self.top
        if len(values) > steps:
            values = values[(np.arange(steps) * (len(values) - 1)) // max(1, steps - 1)]
        self._bounds = np.unique(values)
        self._scale = self.top / max(1, len(self._bounds) + 1)

    def ranks(self, values: pa.Array | pa.ChunkedArray) -> Numbers:
        """A rank for each value, spread over the whole range."""
        import numpy as np

        empty = np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=bool)
        found = np.full(len(empty), self.top, dtype=np.uint64)
        places = np.searchsorted(self._bounds, self._comparable(values.drop_null()), side="right")
        found[~empty] = np.minimum((places * self._scale).astype(np.uint64), self.top - 1)
        return found

    def _comparable(self, values: pa.Array | pa.ChunkedArray) -> Numbers:
        """Values as something NumPy sorts by itself, in their own order."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.types as kinds

        kind = values.type
        if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_binary(kind) or kinds.is_large_binary(kind):
            told = values.cast(pa.large_binary()).to_pylist()
            return np.array([_behind(text, self._prefix) for text in told], dtype=f"S{LONGEST_TEXT_BYTES}")
        if kinds.is_decimal(kind) or kinds.is_boolean(kind):
            values = values.cast(pa.float64() if kinds.is_decimal(kind) else pa.int8())
        elif kinds.is_temporal(kind):
            values = values.cast(pa.int32() if kinds.is_date32(kind) else pa.int64())
        elif not (kinds.is_integer(kind) or kinds.is_floating(kind)):
            told = [str(value).encode() for value in values.to_pylist()]
            return np.array(told, dtype=f"S{LONGEST_TEXT_BYTES}")
        return np.asarray(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy())


def _common_prefix(sample: pa.Array | pa.ChunkedArray) -> bytes:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    kind = sample.type
    if not (kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_binary(kind)):
        return b""
    ends = pc.min_max(sample.cast(pa.large_binary())).as_py()
    least, most = ends["min"] or b"", ends["max"] or b""
    length = next((place for place in range(min(len(least), len(most))) if least[place] != most[place]), None)
    return least[: min(len(least), len(most)) if length is None else length]


def _behind(text: bytes, prefix: bytes) -> bytes:
    """What follows the prefix; texts without it go before or after all that have it, as their order is."""
    if text.startswith(prefix):
        # A first byte of its own keeps the empty rest and zero bytes apart from texts that come before the prefix.
        return b"\x01" + text[len(prefix) :]
    return b"\x00" if text < prefix else b"\xff"


def morton(ranks: Sequence[Numbers], bits: int) -> Numbers:
    """Interleave the bits of the ranks, the first column's on top."""
    import numpy as np

    key = np.zeros(len(ranks[0]), dtype=np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            key = (key << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return key


def hilbert(ranks: Sequence[Numbers], bits: int) -> Numbers:
    """Distance along the Hilbert curve, by Skilling's transposition (AIP Conf. Proc. 707, 381, 2004)."""
    import numpy as np

    one = np.uint64(1)
    axes = [rank.astype(np.uint64) for rank in ranks]
    if len(axes) == 1:
        return axes[0]
    for bit in range(bits - 1, 0, -1):
        high = one << np.uint64(bit)
        low = high - one
        for place, axis in enumerate(axes):
            turned = (axis & high) != 0
            swap = np.where(turned, np.uint64(0), (axes[0] ^ axis) & low)
            axes[0] = np.where(turned, axes[0] ^ low, axes[0] ^ swap)
            if place:
                axes[place] = axis ^ swap
    for place in range(1, len(axes)):
        axes[place] = axes[place] ^ axes[place - 1]
    flip = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        high = one << np.uint64(bit)
        flip = np.where((axes[-1] & high) != 0, flip ^ (high - one), flip)
    return morton([axis ^ flip for axis in axes], bits)


@dataclass(frozen=True, slots=True)
class Curve:
    """How rows are to lie: along a curve over these columns, or sorted by them; columns come with DuckDB types."""

    kind: str
    columns: tuple[tuple[str, str], ...]

    def key_of(self, ranks: Sequence[Numbers]) -> Numbers:
        bits = bits_for(len(ranks))
        return hilbert(ranks, bits) if self.kind == "hilbert" else morton(ranks, bits)


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of the curve, `lower` in it and `upper` not, None where it has no end; sampled ranks tell keys."""

    rankers: tuple[Ranker, ...]
    lower: int | None = None
    upper: int | None = None


def ranked_columns(curve: Curve) -> tuple[tuple[str, str], ...]:
    """The columns that make up a row's key; of a sort order the first one is enough to cut it into stretches."""
    return curve.columns[:1] if curve.kind == "sort" else curve.columns


def rankers_of(connection: duckdb.DuckDBPyConnection, relation: str, curve: Curve) -> tuple[Ranker, ...]:
    """Rankers from a sample of the relation's rows, the same each time."""
    columns = ranked_columns(curve)
    items = ", ".join(_comparable_text(name, kind) for name, kind in columns)
    sample = connection.sql(
        f"SELECT {items} FROM {relation} USING SAMPLE reservoir({SAMPLED_ROWS} ROWS) REPEATABLE (1)"
    ).to_arrow_table()
    return tuple(Ranker(sample.column(place), bits_for(len(columns))) for place in range(len(columns)))


def cuts_of(connection: duckdb.DuckDBPyConnection, relation: str, key: str, parts: int) -> tuple[int, ...]:
    """Keys that cut the relation into stretches of about as many rows; fewer where many rows share a key."""
    shares = ", ".join(str(number / parts) for number in range(1, parts))
    found = connection.execute(
        f"SELECT quantile_disc(key, [{shares}]) FROM"
        f" (SELECT {key} AS key FROM {relation} USING SAMPLE reservoir({SAMPLED_ROWS} ROWS) REPEATABLE (1))"
    ).fetchone()
    return tuple(sorted(set(found[0]))) if found and found[0] else ()


def register_key(connection: duckdb.DuckDBPyConnection, curve: Curve, rankers: Sequence[Ranker]) -> str:
    """Make a row's key a DuckDB function and return the call of it."""
    from duckdb.func import FunctionNullHandling, PythonUDFType

    columns = ranked_columns(curve)

    # DuckDB evaluates the annotations of what it registers, and PyArrow's name types that only a checker imports.
    def key(row: Any) -> Any:
        import pyarrow as pa

        whole = row.combine_chunks() if isinstance(row, pa.ChunkedArray) else row
        ranks = [ranker.ranks(whole.field(place)) for place, ranker in enumerate(rankers)]
        return pa.array(curve.key_of(ranks).view("int64"))

    function = f"relayout_key_{uuid.uuid4().hex[:8]}"
    kinds = [f"c{place} {'VARCHAR' if kind in AS_TEXT else kind}" for place, (_, kind) in enumerate(columns)]
    connection.create_function(
        function,
        key,
        [f"STRUCT({', '.join(kinds)})"],
        "BIGINT",
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
    )
    items = [f"c{place} := {_comparable_text(name, kind)}" for place, (name, kind) in enumerate(columns)]
    return f"{function}(struct_pack({', '.join(items)}))"


def _comparable_text(name: str, kind: str) -> str:
    return f"CAST({quote_duckdb(name)} AS VARCHAR)" if kind in AS_TEXT else quote_duckdb(name)
