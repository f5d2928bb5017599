"""Avro is read as its writer meant it, with only the fields that are wanted."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any

import pytest

from relayout.read.avro_records import AvroRecords

SYNC = b"0123456789abcdef"


def number(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = b""
    while zigzag >= 0x80:
        out += bytes([zigzag & 0x7F | 0x80])
        zigzag >>= 7
    return out + bytes([zigzag])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def file_of(schema: Any, blocks: list[tuple[int, bytes]], codec: bytes = b"null") -> bytes:
    head = b"Obj\x01" + number(2) + text(b"avro.schema") + text(json.dumps(schema).encode())
    head += text(b"avro.codec") + text(codec) + number(0) + SYNC
    for count, data in blocks:
        packed = zlib.compress(data)[2:-4] if codec == b"deflate" else data
        head += number(count) + text(packed) + SYNC
    return head


def field(field_id: int, kind: Any) -> dict[str, Any]:
    return {"name": f"f{field_id}", "field-id": field_id, "type": kind}


PAIRS = {
    "type": "array",
    "logicalType": "map",
    "items": {"type": "record", "name": "pair", "fields": [field(10, "int"), field(11, "long")]},
}
SCHEMA = {
    "type": "record",
    "name": "entry",
    "fields": [
        field(1, "int"),
        field(2, ["null", PAIRS]),
        field(3, {"type": "map", "values": "bytes"}),
        field(4, {"type": "fixed", "name": "d", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}),
        field(5, ["null", "string"]),
        field(102, {"type": "record", "name": "r102", "fields": [field(1000, ["null", "double"])]}),
    ],
}


def record(value: int) -> bytes:
    pairs = number(2) + number(1) + number(-5) + number(300) + number(1 << 40)
    # A block with a negative count also tells its size in bytes.
    pairs += number(-1) + number(2) + number(7) + number(8) + number(0)
    texts = number(1) + text(b"k") + text(b"v") + number(0)
    return (
        number(value)
        + number(1)
        + pairs
        + texts
        + (-1065).to_bytes(4, "big", signed=True)
        + number(1)
        + text("é".encode())
        + number(0)
    )


@pytest.mark.parametrize("codec", [b"null", b"deflate"])
def test_every_kind_of_value_is_read(codec: bytes) -> None:
    stream = io.BytesIO(file_of(SCHEMA, [(2, record(1) + record(-2)), (1, record(1 << 20))], codec))
    found = list(AvroRecords(stream, frozenset([1, 2, 3, 4, 5, 102])))
    assert [each[1] for each in found] == [1, -2, 1 << 20]
    assert found[0] == {1: 1, 2: {1: -5, 300: 1 << 40, 7: 8}, 3: {"k": b"v"}, 4: -1065, 5: "é", 102: {1000: None}}


def test_what_is_not_wanted_is_stepped_over() -> None:
    stream = io.BytesIO(file_of(SCHEMA, [(2, record(1) + record(2))]))
    assert list(AvroRecords(stream, frozenset([5]))) == [{5: "é"}, {5: "é"}]


@pytest.mark.parametrize("cut", [2, 40, -1, -20, -30])
def test_a_torn_file_is_told(cut: int) -> None:
    whole = file_of(SCHEMA, [(2, record(1) + record(2))])
    with pytest.raises((ValueError, IndexError)):
        list(AvroRecords(io.BytesIO(whole[:cut]), frozenset([1, 5])))


def test_another_file_is_told() -> None:
    with pytest.raises(ValueError, match="not an Avro file"):
        AvroRecords(io.BytesIO(b"PAR1 and so on"), frozenset([1]))


def test_a_block_that_was_altered_is_told() -> None:
    whole = bytearray(file_of(SCHEMA, [(2, record(1) + record(2))], b"deflate"))
    whole[-30] ^= 0xFF
    with pytest.raises((ValueError, IndexError)):
        list(AvroRecords(io.BytesIO(bytes(whole)), frozenset([1, 2, 3, 4, 5])))


class _Reluctant(io.BytesIO):
    """Gives less than it is asked for, as sockets do."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 0, 7))


def test_a_stream_may_answer_in_small_portions() -> None:
    stream = _Reluctant(file_of(SCHEMA, [(2, record(1) + record(2)), (1, record(3))]))
    assert [each[1] for each in AvroRecords(stream, frozenset([1]))] == [1, 2, 3]


def test_bounds_are_stepped_over_whatever_their_length() -> None:
    bounds = {
        "type": "array",
        "logicalType": "map",
        "items": {"type": "record", "name": "pair", "fields": [field(10, "int"), field(11, "bytes")]},
    }
    schema = {"type": "record", "name": "entry", "fields": [field(1, bounds), field(2, "int")]}
    told = (
        number(3) + number(1) + text(b"") + number(5_000) + text(b"x" * 63) + number(2) + text(b"y" * 300) + number(0)
    )
    stream = io.BytesIO(file_of(schema, [(1, told + number(7))]))
    assert list(AvroRecords(stream, frozenset([2]))) == [{2: 7}]
    again = io.BytesIO(file_of(schema, [(1, told + number(7))]))
    assert list(AvroRecords(again, frozenset([1, 2]))) == [{1: {1: b"", 5_000: b"x" * 63, 2: b"y" * 300}, 2: 7}]
