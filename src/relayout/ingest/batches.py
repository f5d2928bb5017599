"""Which source file belongs to which batch, and what became of a batch since it was loaded."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from relayout.ledger.records import SourceStamp
from relayout.table.batches import BatchKey, Scalar
from relayout.table.scalars import from_text
from relayout.table.sources import FileContent, PathValues, SourceFile

LONGEST_GAP = 1000
"""A jump of more than this many keys is a change of meaning, not a gap worth listing."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Files by batch; a file that holds several batches stands under each of them.

    `shared` says of such files, by path, how many batches they hold.
    """

    batches: Mapping[BatchKey, tuple[SourceFile, ...]]
    shared: Mapping[str, int]


def assign(
    files: Iterable[SourceFile],
    columns: Sequence[tuple[str, str]],
    value_columns: Sequence[str],
    contents: Mapping[str, FileContent],
    remembered: Mapping[str, Sequence[BatchKey]] = MappingProxyType({}),
) -> Assignment:
    """Group files by the typed values of the batch columns, from the path or, for `value_columns`, the content.

    `remembered` are the batches of files that have not changed since they were loaded. Files whose batch values are
    not known are left out; the caller reports them.
    """
    found: dict[BatchKey, list[SourceFile]] = {}
    shared: dict[str, int] = {}
    by_path: dict[PathValues, list[BatchKey]] = {}
    for file in files:
        keys = remembered.get(file.path) or by_path.get(file.path_values)
        if not keys:
            keys = _keys_of(file, columns, value_columns, contents)
            if not value_columns:
                by_path[file.path_values] = list(keys)
        if len(keys) > 1:
            shared[file.path] = len(keys)
        for key in keys:
            found.setdefault(key, []).append(file)
    ordered = sorted(found.items(), key=lambda item: item[0].sort_key())
    return Assignment({key: tuple(members) for key, members in ordered}, shared)


def _keys_of(
    file: SourceFile,
    columns: Sequence[tuple[str, str]],
    value_columns: Sequence[str],
    contents: Mapping[str, FileContent],
) -> list[BatchKey]:
    in_path = dict(file.path_values)
    told: list[tuple[str | None, ...]] = [()]
    if value_columns:
        content = contents.get(file.path)
        if content is None or content.batch_values is None:
            return []
        told = list(content.batch_values)
    keys = []
    for values in told:
        by_name: dict[str, str | None] = {**dict(zip(value_columns, values, strict=True)), **in_path}
        keys.append(BatchKey(tuple((name, from_text(by_name.get(name), kind)) for name, kind in columns)))
    return list(dict.fromkeys(keys))


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """What differs between the files a batch was loaded from and those it has now."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def described(self, most: int = 5) -> tuple[str, ...]:
        """The first few of each kind, and how many more there are."""
        lines = []
        for word, paths in (("added", self.added), ("changed", self.changed), ("removed", self.removed)):
            lines += [f"{word} {path}" for path in paths[:most]]
            if len(paths) > most:
                lines.append(f"{word} {len(paths) - most} more")
        return tuple(lines)


def compare_sources(
    loaded: Sequence[SourceStamp],
    present: Sequence[SourceFile],
    hash_of: Mapping[str, str],
    listed: Container[str] = (),
) -> SourceChanges:
    """Files that were added, changed or removed; a file that was only touched has the content hash it had.

    A file that is still `listed` but not among the batch's files any more has changed: its rows belong elsewhere now.
    """
    before = {stamp.path: stamp for stamp in loaded}
    now = {file.path: file for file in present}
    changed = [
        path for path, file in now.items() if path in before and _differs(before[path], file, hash_of.get(path, ""))
    ]
    gone = before.keys() - now.keys()
    return SourceChanges(
        added=tuple(sorted(now.keys() - before.keys())),
        changed=tuple(sorted([*changed, *(path for path in gone if path in listed)])),
        removed=tuple(sorted(path for path in gone if path not in listed)),
    )


def only_touched(stamp: SourceStamp, file: SourceFile) -> bool:
    """Whether only the content can tell if the file changed: same size, another time."""
    if stamp.size_bytes != file.size_bytes or (stamp.etag and stamp.etag == file.etag):
        return False
    return (stamp.modified_ns, stamp.changed_ns, stamp.etag) != (file.modified_ns, file.changed_ns, file.etag)


def _differs(stamp: SourceStamp, file: SourceFile, content_hash: str) -> bool:
    if stamp.size_bytes != file.size_bytes:
        return True
    return only_touched(stamp, file) and stamp.content_hash != content_hash


def gaps(keys: Iterable[BatchKey]) -> tuple[str, ...]:
    """Whole numbers that are missing between the first and the last value of a single integer batch column."""
    values: set[Scalar] = set()
    name = ""
    for key in keys:
        if len(key.items) != 1:
            return ()
        name = key.items[0][0]
        values.add(key.items[0][1])
    numbers = sorted(value for value in values if isinstance(value, int) and not isinstance(value, bool))
    if len(numbers) != len(values):
        return ()
    missing = []
    for low, high in pairwise(numbers):
        if high - low > LONGEST_GAP:
            return ()
        missing += [f"{{{name}={value}}}" for value in range(low + 1, high)]
    return tuple(missing)
