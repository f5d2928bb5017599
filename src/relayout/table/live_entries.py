"""Files as manifests name them: what planning needs of an entry, and of a manifest as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relayout.table.evidence import Value

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Summary:
    """What a manifest says of one partition field over all its files; bounds are partition values."""

    contains_null: bool
    contains_nan: bool
    lower: Value = None
    upper: Value = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest of a snapshot; `files` counts its live entries, None where the writer did not say.

    `summaries` follow the fields of its spec; they are empty when the manifest has none.
    """

    path: str
    length: int
    spec_id: int
    holds_deletes: bool
    sequence_number: int
    snapshot_id: int
    files: int | None
    first_row_id: int | None = None
    summaries: tuple[Summary, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnCounts:
    """Statistics by field id, only of the columns that were asked for; bounds are in their binary form."""

    values: Mapping[int, int] = field(default_factory=dict)
    nulls: Mapping[int, int] = field(default_factory=dict)
    nans: Mapping[int, int] = field(default_factory=dict)
    lower: Mapping[int, bytes] = field(default_factory=dict)
    upper: Mapping[int, bytes] = field(default_factory=dict)


NO_COUNTS = ColumnCounts()


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """A live data or delete file; `partition` follows the fields of its spec, in Iceberg's own form of values.

    `offset` and `length` lead to a deletion vector inside its file, and `data_file` names the only file that a
    position delete is for, where that is known.
    """

    content: int
    path: str
    format: str
    spec_id: int
    partition: tuple[Value, ...]
    rows: int
    size_bytes: int
    data_sequence_number: int
    first_row_id: int | None = None
    counts: ColumnCounts = NO_COUNTS
    data_file: str = ""
    offset: int | None = None
    length: int | None = None
    equality_ids: tuple[int, ...] = ()
    sort_order_id: int | None = None
