"""Curves visit every cell once and near ones together; ranks follow the order of values, whatever their spread."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.kernels.order import Curve, Ranker, bits_for, cuts_of, hilbert, morton, rankers_of, register_key


@pytest.mark.parametrize(("columns", "bits"), [(1, 5), (2, 4), (3, 3), (4, 2)])
def test_a_hilbert_curve_goes_from_neighbour_to_neighbour(columns: int, bits: int) -> None:
    cells = np.array(list(itertools.product(range(1 << bits), repeat=columns)), dtype=np.uint64).T
    keys = hilbert(list(cells), bits)
    assert sorted(keys) == list(range(1 << (bits * columns)))
    steps = np.abs(np.diff(cells[:, np.argsort(keys)].astype(int), axis=1)).sum(axis=0)
    assert set(steps) == {1}


@given(st.integers(0, 4095), st.integers(0, 4095), st.integers(0, 4095))
def test_a_z_order_key_holds_every_bit_of_every_rank(a: int, b: int, c: int) -> None:
    (key,) = morton([np.array([value], dtype=np.uint64) for value in (a, b, c)], 12)
    bits = f"{int(key):036b}"
    assert [int(bits[place::3], 2) for place in range(3)] == [a, b, c]


def test_keys_of_many_columns_still_fit() -> None:
    assert [bits_for(columns) * columns <= 63 for columns in range(1, 9)] == [True] * 8


@pytest.mark.parametrize(
    "values",
    [
        [3, -1, None, 2**40, 3, 0],
        ["", "https://x/b", "https://x/a", None, "https://x/", "zz", "https://x/a"],
        [b"\x00a", b"", None, b"\xff"],
        [1.5, None, float("-inf"), float("inf"), -0.5],
        [date(1969, 1, 1), None, date(2020, 2, 29)],
        [datetime(1950, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=UTC), None],
        [Decimal("1.25"), None, Decimal("-7.00")],
        [True, None, False],
    ],
)
def test_ranks_have_the_order_of_values_and_nulls_come_last(values: list[Any]) -> None:
    ranks = Ranker(pa.array(values), 8).ranks(pa.array(values))
    known = sorted((value, rank) for value, rank in zip(values, ranks, strict=True) if value is not None)
    assert [rank for _, rank in known] == sorted(rank for _, rank in known)
    distinct = dict(known)
    assert len(set(distinct.values())) == len(distinct)
    assert {rank for value, rank in zip(values, ranks, strict=True) if value is None} <= {255}
    assert max(rank for _, rank in known) < 255


def test_a_frequent_value_takes_one_rank_and_leaves_the_others_to_the_rest() -> None:
    skewed = pa.array([7] * 9_000 + list(range(1_000)))
    ranks = Ranker(skewed, 8).ranks(skewed)
    assert len(set(ranks[:9_000])) == 1
    assert len(set(ranks[9_000:])) > 20


def test_a_sample_without_values_ranks_everything() -> None:
    assert list(Ranker(pa.array([], pa.string()), 4).ranks(pa.array(["a", None]))) == [0, 15]


@pytest.mark.parametrize("kind", ["zorder", "hilbert", "sort"])
def test_stretches_of_a_relation_hold_about_as_many_rows(kind: str) -> None:
    curve = Curve(kind, (("a b", "BIGINT"), ("u", "UUID")))
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE t AS SELECT (i * 7919) % 1000 AS "a b", uuid() AS u FROM range(20000) AS r(i)')
        key = register_key(connection, curve, rankers_of(connection, "t", curve))
        cuts = cuts_of(connection, "t", key, 4)
        (counts,) = zip(
            *connection.execute(
                f"SELECT count(*) FROM t GROUP BY list_sum([{key} >= c FOR c IN {list(cuts)}])"
            ).fetchall(),
            strict=True,
        )
    assert len(counts) == 4
    assert min(counts) > 4_000
