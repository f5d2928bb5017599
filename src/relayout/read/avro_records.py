"""Avro files as streams of records: only the fields that are asked for are made, everything else is stepped over.

Manifests say by themselves what they hold, so values are read as their writer meant them, also when the table's schema
has moved on. Records come as mappings from Iceberg's field ids; decimals as unscaled numbers, uuids as bytes.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyiceberg.avro.codecs.codec import Codec

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_PARTITION = 102
_PIECE_BYTES = 4 << 20

Read = Callable[[bytes, int], tuple[Any, int]]
"""From a buffer and a place to the value and the place behind it."""

Skip = Callable[[bytes, int], int]
"""From a buffer and a place to the place behind the value."""

_Step = tuple[int, Read | None, Skip]


class Stream(Protocol):
    """What is needed of an open file."""

    def read(self, size: int = ..., /) -> bytes: ...


class AvroRecords:
    """The records of one open Avro file; `wanted` names the field ids to read, inside nested records too."""

    def __init__(self, stream: Stream, wanted: frozenset[int]) -> None:
        self._stream = _Pieces(stream)
        if self._stream.exactly(len(_MAGIC)) != _MAGIC:
            raise ValueError("it is not an Avro file")
        self.metadata = _metadata(self._stream)
        self._sync = self._stream.exactly(_SYNC_BYTES)
        self.schema: Any = json.loads(self.metadata["avro.schema"])
        self._codec = _codec(self.metadata.get("avro.codec", b"null").decode())
        self._record = _Shapes(wanted).reader(self.schema)

    def __iter__(self) -> Iterator[Mapping[int, Any]]:
        read = self._record
        while not self._stream.is_at_end():
            count, size = self._stream.long(), self._stream.long()
            block = self._stream.exactly(size)
            if self._stream.exactly(_SYNC_BYTES) != self._sync:
                raise ValueError("a block does not end where it should")
            data = block if self._codec is None else _decompressed(self._codec, block)
            place = 0
            for _ in range(count):
                record, place = read(data, place)
                yield record


class _Pieces:
    """A stream read in large pieces, because a distant store answers each request by itself."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._piece = b""
        self._place = 0

    def exactly(self, size: int) -> bytes:
        if size < 0:
            raise ValueError("a length is negative")
        while len(self._piece) - self._place < size:
            if not self._more(size):
                raise ValueError("the file ends too early")
        found = self._piece[self._place : self._place + size]
        self._place += size
        return found

    def is_at_end(self) -> bool:
        return self._place == len(self._piece) and not self._more(1)

    def long(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self.exactly(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7

    def _more(self, size: int) -> bool:
        piece = self._stream.read(max(_PIECE_BYTES, size))
        self._piece = self._piece[self._place :] + piece
        self._place = 0
        return bool(piece)


def _metadata(stream: _Pieces) -> dict[str, bytes]:
    """The file's own words about itself."""
    found: dict[str, bytes] = {}
    while count := stream.long():
        if count < 0:
            count = -count
            stream.long()
        for _ in range(count):
            key = stream.exactly(stream.long()).decode()
            found[key] = stream.exactly(stream.long())
    return found


def _codec(name: str) -> type[Codec] | None:
    from pyiceberg.avro.codecs import KNOWN_CODECS

    if name not in KNOWN_CODECS:
        raise ValueError(f"its compression {name!r} is not known")
    return KNOWN_CODECS[name]


def _decompressed(codec: type[Codec], block: bytes) -> bytes:
    try:
        return codec.decompress(block)
    except Exception as error:
        # Every library of compression has an error of its own.
        raise ValueError(f"a block cannot be decompressed: {error}") from error


# How values are read, per type.


def read_long(buffer: bytes, place: int) -> tuple[int, int]:
    byte = buffer[place]
    place += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), place
    number, shift = byte & 0x7F, 7
    while True:
        byte = buffer[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place
        shift += 7


def _skip_long(buffer: bytes, place: int) -> int:
    while buffer[place] >= 0x80:
        place += 1
    return place + 1


def _read_bytes(buffer: bytes, place: int) -> tuple[bytes, int]:
    size, place = read_long(buffer, place)
    return buffer[place : place + size], place + size


def _skip_bytes(buffer: bytes, place: int) -> int:
    size, place = read_long(buffer, place)
    return place + size


def _read_text(buffer: bytes, place: int) -> tuple[str, int]:
    size, place = read_long(buffer, place)
    return buffer[place : place + size].decode("utf-8", "surrogatepass"), place + size


def _read_boolean(buffer: bytes, place: int) -> tuple[bool, int]:
    return buffer[place] == 1, place + 1


def _read_float(buffer: bytes, place: int) -> tuple[float, int]:
    return struct.unpack_from("<f", buffer, place)[0], place + 4


def _read_double(buffer: bytes, place: int) -> tuple[float, int]:
    return struct.unpack_from("<d", buffer, place)[0], place + 8


def _read_null(_buffer: bytes, place: int) -> tuple[None, int]:
    return None, place


def _step_over(size: int) -> Skip:
    return lambda _buffer, place: place + size


def _decimal(read: Read) -> Read:
    def unscaled(buffer: bytes, place: int) -> tuple[int, int]:
        raw, place = read(buffer, place)
        return int.from_bytes(raw, "big", signed=True), place

    return unscaled


_PRIMITIVES: dict[str, tuple[Read, Skip]] = {
    "null": (_read_null, _step_over(0)),
    "boolean": (_read_boolean, _step_over(1)),
    "int": (read_long, _skip_long),
    "long": (read_long, _skip_long),
    "float": (_read_float, _step_over(4)),
    "double": (_read_double, _step_over(8)),
    "bytes": (_read_bytes, _skip_bytes),
    "string": (_read_text, _skip_bytes),
}


class _Shapes:
    """Readers for Avro types, made once per file; with nothing named as wanted everything is."""

    def __init__(self, wanted: frozenset[int] | None) -> None:
        self._wanted = wanted

    def reader(self, shape: Any) -> Read:
        return self._made(shape)[0]

    def _made(self, shape: Any) -> tuple[Read, Skip]:
        if isinstance(shape, list):
            return self._union(shape)
        if isinstance(shape, str):
            return _PRIMITIVES[shape]
        match shape["type"]:
            case "record":
                return self._record(shape)
            case "array":
                return self._array(shape)
            case "fixed":
                read, skip = _fixed(shape["size"])
                return (_decimal(read), skip) if shape.get("logicalType") == "decimal" else (read, skip)
            case "map":
                return self._pairs("string", shape["values"])
            case inner:
                read, skip = self._made(inner)
                return (_decimal(read), skip) if shape.get("logicalType") == "decimal" else (read, skip)

    def _record(self, shape: Mapping[str, Any]) -> tuple[Read, Skip]:
        steps: list[_Step] = []
        for field in shape["fields"]:
            field_id = field.get("field-id", -1)
            # The fields of a partition tuple have ids that nobody knows beforehand.
            read, skip = (self if field_id != _PARTITION else _Shapes(None))._made(field["type"])
            steps.append((field_id, read if self._wanted is None or field_id in self._wanted else None, skip))

        def read_record(buffer: bytes, place: int) -> tuple[dict[int, Any], int]:
            found: dict[int, Any] = {}
            for field_id, read, skip in steps:
                if read is None:
                    place = skip(buffer, place)
                else:
                    found[field_id], place = read(buffer, place)
            return found, place

        def skip_record(buffer: bytes, place: int) -> int:
            for _, _, skip in steps:
                place = skip(buffer, place)
            return place

        return read_record, skip_record

    def _union(self, shapes: list[Any]) -> tuple[Read, Skip]:
        made = [self._made(shape) for shape in shapes]
        reads, skips = [read for read, _ in made], [skip for _, skip in made]

        def read_union(buffer: bytes, place: int) -> tuple[Any, int]:
            # The branch is a number below 64, so one byte.
            return reads[buffer[place] >> 1](buffer, place + 1)

        def skip_union(buffer: bytes, place: int) -> int:
            return skips[buffer[place] >> 1](buffer, place + 1)

        return read_union, skip_union

    def _array(self, shape: Mapping[str, Any]) -> tuple[Read, Skip]:
        items = shape["items"]
        if isinstance(items, dict) and shape.get("logicalType") == "map":
            # Maps with keys that are not texts, as Iceberg writes them.
            return self._pairs(*(field["type"] for field in items["fields"]))
        read, skip = self._made(items)
        return _blocks_read(read), _blocks_skipped(lambda buffer, place, count: _skip_each(skip, buffer, place, count))

    def _pairs(self, key: Any, value: Any) -> tuple[Read, Skip]:
        (read_key, skip_key), (read_value, skip_value) = self._made(key), self._made(value)

        def read_pair(buffer: bytes, place: int) -> tuple[tuple[Any, Any], int]:
            name, place = read_key(buffer, place)
            told, place = read_value(buffer, place)
            return (name, told), place

        read_pairs = _blocks_read(read_pair)

        def read_map(buffer: bytes, place: int) -> tuple[dict[Any, Any], int]:
            pairs, place = read_pairs(buffer, place)
            return dict(pairs), place

        if skip_key is _skip_long and skip_value is _skip_long:
            return read_map, _blocks_skipped(lambda buffer, place, count: _skip_longs(buffer, place, 2 * count))
        if skip_key is _skip_long and skip_value is _skip_bytes:
            return read_map, _blocks_skipped(_skip_numbered_bytes)
        return read_map, _blocks_skipped(
            lambda buffer, place, count: _skip_each(lambda b, p: skip_value(b, skip_key(b, p)), buffer, place, count)
        )


def _blocks_read(read: Read) -> Read:
    def read_array(buffer: bytes, place: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        while True:
            count, place = read_long(buffer, place)
            if count == 0:
                return found, place
            if count < 0:
                place = _skip_long(buffer, place)
            for _ in range(abs(count)):
                value, place = read(buffer, place)
                found.append(value)

    return read_array


def _fixed(size: int) -> tuple[Read, Skip]:
    return lambda buffer, place: (buffer[place : place + size], place + size), _step_over(size)


def _blocks_skipped(skip_items: Callable[[bytes, int, int], int]) -> Skip:
    def skip_array(buffer: bytes, place: int) -> int:
        while True:
            count, place = read_long(buffer, place)
            if count == 0:
                return place
            if count < 0:
                size, place = read_long(buffer, place)
                place += size
            else:
                place = skip_items(buffer, place, count)

    return skip_array


def _skip_each(skip: Skip, buffer: bytes, place: int, count: int) -> int:
    for _ in range(count):
        place = skip(buffer, place)
    return place


def _skip_numbered_bytes(buffer: bytes, place: int, count: int) -> int:
    """Bounds make up most of a manifest, so they are stepped over without a call for each part."""
    for _ in range(count):
        while buffer[place] >= 0x80:
            place += 1
        size = buffer[place + 1]
        if size < 0x80:
            place += 2 + (size >> 1)
        else:
            place = _skip_bytes(buffer, place + 1)
    return place


def _skip_longs(buffer: bytes, place: int, count: int) -> int:
    # The regular expression engine walks over many of them faster than Python walks over one.
    found = re.compile(rb"(?:[\x80-\xff]*[\x00-\x7f]){%d}" % count).match(buffer, place)
    if found is None:
        raise ValueError("a list of numbers ends too early")
    return found.end()
