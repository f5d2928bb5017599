"""Groups out of candidates: per partition, or per set of target partitions when files move to another spec."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

from relayout.compact.candidates import Candidate, is_worth_it, output_files, packed, reason_of
from relayout.compact.containment import Box, Span, components, hull_of, partitions_in
from relayout.compact.options import RewriteOptions
from relayout.compact.plan import FileGroup, Forecast, JobOrder
from relayout.jobs.candidate_spool import CandidateSpool
from relayout.read.manifest_streams import PartitionTypes
from relayout.spark.jars import cache_folder
from relayout.table.layouts import PartitionField, transform_result_type
from relayout.table.live_entries import EQUALITY_DELETES, LiveEntry
from relayout.table.names import partition_path
from relayout.table.partition_keys import PartitionKey, PartitionSpec, SpecField
from relayout.table.plain_values import json_of
from relayout.table.predicates import Leaf
from relayout.table.rewrites import GroupFiles, MembersElsewhere, PlannedDelete, PlannedFile, digest_of
from relayout.table.transforms import PERIODS

MOST_IN_PLAN = 20_000
"""A plan with more files keeps them in a file beside it."""

_KEPT_SECONDS = 7 * 24 * 3600
_SEVERAL = -1


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups in the order of their partitions; `left_files` are candidates of groups that are not worth it."""

    groups: tuple[FileGroup, ...] = ()
    left_files: int = 0
    forecast: Forecast | None = None


class MembersBeside:
    """A file with one line of members per group, made with the first of them."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._path = cache_folder() / "plans" / f"members-{uuid.uuid4().hex}.jsonl"

    def keep(self, members: GroupFiles) -> MembersElsewhere:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            forget_old_members(self._path.parent, time.time() - _KEPT_SECONDS)
            self._file = self._path.open("wb")
        text = members.canonical()
        line = text.encode("utf-8", "surrogatepass")
        place = MembersElsewhere(str(self._path), self._file.tell(), len(line), digest_of(text))
        self._file.write(line + b"\n")
        return place

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def forget_old_members(folder: Path, before: float) -> None:
    """Remove members of plans that nobody has applied for long."""
    for path in folder.glob("members-*.jsonl"):
        if path.stat().st_mtime < before:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class GroupMaker:
    """What groups are made with; `keys` and `deletes` are what candidates' places lead to."""

    specs: Mapping[int, PartitionSpec]
    leaves: Mapping[int, Leaf]
    types: PartitionTypes
    keys: Sequence[PartitionKey]
    deletes: Sequence[LiveEntry]
    options: RewriteOptions
    target: PartitionSpec
    _values: dict[int, list[Any]] = field(default_factory=dict)

    def by_partition(self, spool: CandidateSpool) -> Grouping:
        """Groups that never cross a partition key, numbered in the order of the keys."""
        order = sorted(range(len(self.keys)), key=lambda place: self.keys[place].sort_key())
        left = 0

        def worthy(chunks: Iterable[list[Candidate]]) -> Iterator[list[Candidate]]:
            nonlocal left
            for chunk in chunks:
                if is_worth_it(chunk, self.options):
                    yield chunk
                else:
                    left += len(chunk)

        chunks = (
            chunk
            for _, candidates in groupby(spool.ordered(_ranks(order)), key=lambda candidate: candidate.key)
            for chunk in packed(candidates, self.options)
        )
        groups = self._made(worthy(chunks), spool.count, self._kept_partition)
        return Grouping(groups, left)

    def by_containment(self, spool: CandidateSpool, boxes: Sequence[Box]) -> Grouping:
        """Groups that share no target partition, unless one alone is larger than a group may be."""
        parts = components(boxes)
        order = [place for part in parts for place in part]
        part_of = {place: number for number, part in enumerate(parts) for place in part}
        cells: list[int | None] = []

        def described(group: Sequence[Candidate]) -> _Described:
            hull = hull_of([boxes[place] for place in {candidate.bin for candidate in group}])
            cells.append(_cells(hull, group))
            return self._moved_partition(hull, group, cells[-1])

        chunks = (
            chunk
            for _, candidates in groupby(spool.ordered(_ranks(order)), key=lambda candidate: part_of[candidate.bin])
            for chunk in packed(candidates, self.options)
        )
        groups = self._made(chunks, spool.count, described)
        known = [count for count in cells if count is not None]
        forecast = Forecast(
            files_before=spool.count,
            files_after=sum(group.expected_output_files for group in groups),
            partitions_before=len(self.keys),
            partitions_after=sum(known) if len(known) == len(cells) else None,
        )
        return Grouping(groups, 0, forecast)

    def _made(
        self,
        chunks: Iterable[list[Candidate]],
        candidates: int,
        describe: Callable[[Sequence[Candidate]], _Described],
    ) -> tuple[FileGroup, ...]:
        beside = MembersBeside() if candidates > MOST_IN_PLAN else None
        try:
            return tuple(self._group(number, chunk, describe, beside) for number, chunk in enumerate(chunks))
        finally:
            if beside is not None:
                beside.close()

    def _group(
        self,
        number: int,
        chunk: Sequence[Candidate],
        describe: Callable[[Sequence[Candidate]], _Described],
        beside: MembersBeside | None,
    ) -> FileGroup:
        files = self._files(chunk)
        size = sum(candidate.size_bytes for candidate in chunk)
        told = describe(chunk)
        members: GroupFiles | MembersElsewhere = files
        if beside is not None:
            members = beside.keep(files)
        return FileGroup(
            group_id=number,
            spec_id=told.spec_id,
            partition=told.partition,
            label=told.label,
            output_spec_id=told.output_spec_id,
            reason=reason_of(chunk, self.options),
            input_files=len(chunk),
            input_bytes=size,
            input_rows=sum(candidate.rows for candidate in chunk),
            delete_files=len(files.deletes),
            expected_output_files=max(output_files(size, self.options), told.least_files),
            digest=members.digest if isinstance(members, MembersElsewhere) else members.digest(),
            members=members,
        )

    def _files(self, chunk: Sequence[Candidate]) -> GroupFiles:
        used = sorted({place for candidate in chunk for place in candidate.deletes})
        within = {place: number for number, place in enumerate(used)}
        # Thousands of files may share one long list of deletes, which is then made once.
        shared = {deletes: tuple(within[place] for place in deletes) for deletes in {each.deletes for each in chunk}}
        data = tuple(
            PlannedFile(
                self._data_json(candidate),
                candidate.data_sequence_number,
                candidate.first_row_id,
                shared[candidate.deletes],
                candidate.match,
            )
            for candidate in chunk
        )
        deletes = tuple(
            PlannedDelete(self._delete_json(self.deletes[place]), self.deletes[place].data_sequence_number)
            for place in used
        )
        return GroupFiles(data, deletes)

    def _data_json(self, candidate: Candidate) -> dict[str, Any]:
        key = self.keys[candidate.key]
        values = self._values.get(candidate.key)
        if values is None:
            values = self._values[candidate.key] = self._tuple_json(key.spec_id, key.partition)
        told = {
            "spec-id": key.spec_id,
            "content": "data",
            "file-path": candidate.path,
            "file-format": candidate.format,
            "partition": values,
            "file-size-in-bytes": candidate.size_bytes,
            "record-count": candidate.rows,
        }
        return told if candidate.sort_order_id is None else {**told, "sort-order-id": candidate.sort_order_id}

    def _delete_json(self, entry: LiveEntry) -> dict[str, Any]:
        told: dict[str, Any] = {
            "spec-id": entry.spec_id,
            "content": "equality-deletes" if entry.content == EQUALITY_DELETES else "position-deletes",
            "file-path": entry.path,
            "file-format": entry.format,
            "partition": self._tuple_json(entry.spec_id, entry.partition),
            "file-size-in-bytes": entry.size_bytes,
            "record-count": entry.rows,
        }
        if entry.offset is not None:
            told |= {"content-offset": entry.offset, "content-size-in-bytes": entry.length}
            told["referenced-data-file"] = entry.data_file
        if entry.equality_ids:
            told["equality-ids"] = list(entry.equality_ids)
        return told

    def _tuple_json(self, spec_id: int, values: Sequence[Any] | None) -> list[Any]:
        fields = self.specs[spec_id].fields
        if values is None:
            return [None] * len(fields)
        # Some writers store days as plain numbers; Iceberg reads them as dates all the same.
        kinds = [
            "date" if item.transform.name == "day" else kind
            for item, kind in zip(fields, self.types.of(spec_id), strict=True)
        ]
        return [json_of(value, kind) for value, kind in zip(values, kinds, strict=True)]

    # What a group is called.

    def _kept_partition(self, chunk: Sequence[Candidate]) -> _Described:
        key = self.keys[chunk[0].key]
        spec = self.specs[key.spec_id]
        if key.partition is None:
            return _Described(key.spec_id, None, "", key.spec_id)
        values = self._tuple_json(key.spec_id, key.partition)
        named = {item.name: value for item, value in zip(spec.fields, values, strict=True)}
        label = "/".join(
            f"{item.name}={_value_text(item, raw, kind)}"
            for item, raw, kind in zip(spec.fields, key.partition, self.types.of(key.spec_id), strict=True)
            if item.transform.name != "void"
        )
        return _Described(key.spec_id, named, label, key.spec_id)

    def _moved_partition(self, hull: Box, chunk: Sequence[Candidate], cells: int | None) -> _Described:
        spec_ids = {self.keys[candidate.key].spec_id for candidate in chunk}
        spec_id = spec_ids.pop() if len(spec_ids) == 1 else _SEVERAL
        fields = [
            (item, span, self._result_type(item.source_id, str(item.transform)))
            for item, span in zip(self.target.fields, hull, strict=True)
            if item.transform.name != "void"
        ]
        named = {item.name: json_of(span.value, kind) for item, span, kind in fields if span.is_one_value}
        label = "/".join(f"{item.name}={_range_text(item, span, kind)}" for item, span, kind in fields)
        least = 1 if cells is None else cells
        return _Described(spec_id, None if self.target.is_unpartitioned else named, label, self.target.spec_id, least)

    def _result_type(self, source_id: int, transform: str) -> str:
        leaf = self.leaves.get(source_id)
        return "string" if leaf is None else transform_result_type(transform, leaf.type)


@dataclass(frozen=True, slots=True)
class _Described:
    spec_id: int
    partition: Mapping[str, Any] | None
    label: str
    output_spec_id: int
    least_files: int = 1


def _value_text(item: SpecField, raw: Any, kind: str) -> str:
    """A value as folders show it: periods by their calendar name, everything else as it is."""
    if item.transform.name in PERIODS and isinstance(raw, int):
        return partition_path([PartitionField(item.name, item.transform.name, "p")], [raw]).removeprefix("p=")
    return "null" if raw is None else str(json_of(raw, kind))


def _range_text(item: SpecField, span: Span, kind: str) -> str:
    """`2023-01…2024-09`, `eu`; an end that is not known is left out."""
    if span.is_one_value:
        return _value_text(item, span.value, kind)
    ends = [_value_text(item, end[1], kind) if len(end) == 2 else "" for end in (span.low, span.high)]
    return "…".join(ends)


def _cells(hull: Box, group: Sequence[Candidate]) -> int | None:
    """Target partitions that a group writes at most; no more than it has rows."""
    count = partitions_in(hull)
    return None if count is None else max(1, min(count, sum(candidate.rows for candidate in group)))


def _ranks(order: Sequence[int]) -> list[int]:
    ranks = [0] * len(order)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


def ordered_for_jobs(groups: Sequence[FileGroup], order: JobOrder) -> tuple[FileGroup, ...]:
    """The groups in the order in which they are worked on; equal ones stay in the order of their ids."""
    if order is JobOrder.NONE:
        return tuple(groups)
    by_bytes = order in (JobOrder.BYTES_ASC, JobOrder.BYTES_DESC)
    sign = 1 if order in (JobOrder.BYTES_ASC, JobOrder.FILES_ASC) else -1
    return tuple(
        sorted(
            groups, key=lambda group: (sign * (group.input_bytes if by_bytes else group.input_files), group.group_id)
        )
    )
