"""Values in JSON look as Iceberg's own single-value serialization has them."""

from __future__ import annotations

import math
import uuid
from typing import Any

import pytest

from relayout.table.plain_values import json_of


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, "date", None),
        (True, "boolean", True),
        (-7, "int", -7),
        (-0.0, "double", -0.0),
        (math.nan, "double", "NaN"),
        (-math.inf, "float", "-Infinity"),
        ("é", "string", "é"),
        (-1, "date", "1969-12-31"),
        (19_782, "date", "2024-02-29"),
        (2_932_897, "date", "+10000-01-01"),
        (-1, "timestamp", "1969-12-31T23:59:59.999999"),
        (0, "timestamptz", "1970-01-01T00:00:00+00:00"),
        (1, "timestamp_ns", "1970-01-01T00:00:00.000000001"),
        (81_068_000_000, "time", "22:31:08"),
        (-123456789012345678900001, "decimal(30,4)", "-12345678901234567890.0001"),
        (5_000, "decimal(9,4)", "0.5000"),
        (b"\x00\xff", "binary", "00FF"),
        (b"", "binary", ""),
        (uuid.UUID(int=7).bytes, "uuid", "00000000-0000-0000-0000-000000000007"),
    ],
)
def test_values_of_every_type(value: Any, kind: str, expected: Any) -> None:
    assert repr(json_of(value, kind)) == repr(expected)
