"""Which delete files apply to a data file, by the scopes of Iceberg's specification.

A position delete reaches data of its own spec and partition that is not newer than it; one that names its data file
reaches that one. A deletion vector stands for all position deletes of its file. An equality delete reaches strictly
older data of its own spec and partition, or of the whole table when its spec is unpartitioned.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from relayout.table.bounds import column_evidence
from relayout.table.live_entries import EQUALITY_DELETES, ColumnCounts, LiveEntry
from relayout.table.partition_keys import PartitionKey

_MOST_COMPARED = 64
"""Bounds are looked at only where few equality deletes are in scope; for many it would take longer than it saves."""


@dataclass(slots=True)
class _Scope:
    """Delete files of one scope by their sequence numbers; sorted before it is asked."""

    sequences: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def add(self, sequence: int, place: int) -> None:
        self.sequences.append(sequence)
        self.places.append(place)

    def sort(self) -> None:
        pairs = sorted(zip(self.sequences, self.places, strict=True))
        self.sequences, self.places = [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def not_older(self, sequence: int) -> list[int]:
        return self.places[bisect_left(self.sequences, sequence) :]

    def newer(self, sequence: int) -> list[int]:
        return self.places[bisect_right(self.sequences, sequence) :]


@dataclass(slots=True)
class DeleteIndex:
    """All live delete files of a snapshot; `types` are the current columns' types by id."""

    types: Mapping[int, str]
    deletes: list[LiveEntry] = field(default_factory=list)
    _vectors: dict[str, int] = field(default_factory=dict)
    _of_file: dict[str, _Scope] = field(default_factory=dict)
    _of_partition: dict[PartitionKey, _Scope] = field(default_factory=dict)
    _equality: dict[PartitionKey, _Scope] = field(default_factory=dict)
    _everywhere: _Scope = field(default_factory=_Scope)
    _in_scope: dict[tuple[PartitionKey, int], tuple[int, ...]] = field(default_factory=dict)

    def add(self, entry: LiveEntry, key: PartitionKey) -> None:
        place = len(self.deletes)
        self.deletes.append(entry)
        sequence = entry.data_sequence_number
        if entry.content == EQUALITY_DELETES:
            scope = self._everywhere if key.partition is None else self._equality.setdefault(key, _Scope())
            scope.add(sequence, place)
        elif entry.offset is not None and entry.data_file:
            self._vectors[entry.data_file] = place
        elif entry.data_file:
            self._of_file.setdefault(entry.data_file, _Scope()).add(sequence, place)
        else:
            self._of_partition.setdefault(key, _Scope()).add(sequence, place)

    def finish(self) -> None:
        """Make the index ready to be asked; nothing may be added any more."""
        for scopes in (self._of_file, self._of_partition, self._equality):
            for scope in scopes.values():
                scope.sort()
        self._everywhere.sort()

    @property
    def equality_columns(self) -> frozenset[int]:
        """The columns whose statistics tell whether an equality delete can touch a file."""
        return frozenset(
            column for entry in self.deletes if entry.content == EQUALITY_DELETES for column in entry.equality_ids
        )

    def deletes_of(self, file: LiveEntry, key: PartitionKey) -> tuple[int, ...]:
        """Places in `deletes` of everything that applies to the file, in the order in which it was added."""
        if not self.deletes:
            return ()
        sequence = file.data_sequence_number
        equality = self._equality_in_scope(key, sequence)
        if 0 < len(equality) <= _MOST_COMPARED:
            equality = tuple(place for place in equality if self._may_touch(self.deletes[place], file))
        positions = self._positions(file, key, sequence)
        return tuple(sorted([*equality, *positions])) if positions else equality

    def _equality_in_scope(self, key: PartitionKey, sequence: int) -> tuple[int, ...]:
        """Equality deletes of the file's partition and of the whole table that are newer; one tuple for many files."""
        found = self._in_scope.get((key, sequence))
        if found is None:
            places = self._everywhere.newer(sequence)
            if scope := self._equality.get(key):
                places = places + scope.newer(sequence)
            found = self._in_scope[(key, sequence)] = tuple(sorted(places))
        return found

    def _positions(self, file: LiveEntry, key: PartitionKey, sequence: int) -> list[int]:
        vector = self._vectors.get(file.path)
        if vector is not None:
            return [vector]
        positions: list[int] = []
        if scope := self._of_partition.get(key):
            positions += scope.not_older(sequence)
        if scope := self._of_file.get(file.path):
            positions += scope.not_older(sequence)
        return positions

    def deleted_rows(self, file: LiveEntry, deletes: tuple[int, ...]) -> int:
        """Rows that are certainly deleted: those in delete files that are for this file alone."""
        named = sum(self.deletes[place].rows for place in deletes if self.deletes[place].data_file)
        return min(named, file.rows)

    def _may_touch(self, delete: LiveEntry, file: LiveEntry) -> bool:
        return all(
            _may_meet(delete.counts, file.counts, column, self.types[column])
            for column in delete.equality_ids
            if column in self.types
        )


def _may_meet(delete: ColumnCounts, file: ColumnCounts, column: int, kind: str) -> bool:
    """Whether a value of the column may be in both files."""
    left, right = (column_evidence(counts, column, kind, required=False) for counts in (delete, file))
    if (left.may_have_nulls and right.may_have_nulls) or (left.may_have_nans and right.may_have_nans):
        return True
    if not left.may_have_values or not right.may_have_values:
        return False
    apart = (left.upper is not None and right.lower is not None and left.upper < right.lower) or (
        right.upper is not None and left.lower is not None and right.upper < left.lower
    )
    return not apart
