"""Files that are to be rewritten together, and the delete files that apply to each of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ContentFile = Mapping[str, Any]
"""A data or delete file in the JSON form of Iceberg's ContentFileParser, without metrics."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file to rewrite; `deletes` are the places of its delete files in the group.

    `verdict` says what is known of its rows and the filter, empty without a filter. `first_row_id` is null below v3.
    """

    content: ContentFile
    data_sequence_number: int
    first_row_id: int | None = None
    deletes: tuple[int, ...] = ()
    verdict: str = ""

    @property
    def path(self) -> str:
        return str(self.content["file-path"])

    @property
    def size_bytes(self) -> int:
        return int(self.content["file-size-in-bytes"])

    @property
    def rows(self) -> int:
        return int(self.content["record-count"])

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.content,
            "data_sequence_number": self.data_sequence_number,
            "first_row_id": self.first_row_id,
            "deletes": list(self.deletes),
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class PlannedDelete:
    """A delete file or deletion vector that applies to data files of a group.

    It may apply to files outside the group too, so it goes only when nothing live is left in its scope.
    """

    content: ContentFile
    data_sequence_number: int

    @property
    def path(self) -> str:
        return str(self.content["file-path"])

    def to_json(self) -> dict[str, Any]:
        return {"file": self.content, "data_sequence_number": self.data_sequence_number}


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """The members of one group: its data files, and every delete file that applies to one of them, each once."""

    data: tuple[PlannedFile, ...]
    deletes: tuple[PlannedDelete, ...] = ()

    def deletes_of(self, file: PlannedFile) -> tuple[PlannedDelete, ...]:
        return tuple(self.deletes[place] for place in file.deletes)

    def to_json(self) -> dict[str, Any]:
        return {"data": [file.to_json() for file in self.data], "deletes": [file.to_json() for file in self.deletes]}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> GroupFiles:
        data = tuple(
            PlannedFile(
                file["file"],
                file["data_sequence_number"],
                file["first_row_id"],
                tuple(file["deletes"]),
                file["verdict"],
            )
            for file in told["data"]
        )
        return cls(data, tuple(PlannedDelete(file["file"], file["data_sequence_number"]) for file in told["deletes"]))

    def canonical(self) -> str:
        """One line of JSON that is the same for equal members."""
        return canonical_json(self.to_json())

    def digest(self) -> str:
        return digest_of(self.canonical())


@dataclass(frozen=True, slots=True)
class MembersElsewhere:
    """Where a large plan keeps the members of one group: a line in a file, and the digest that it must have."""

    file: str
    offset: int
    length: int
    digest: str

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "offset": self.offset, "length": self.length}


def canonical_json(value: Any) -> str:
    """Compact JSON with sorted keys: equal values give equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest_of(canonical: str) -> str:
    """32 hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]
