"""Which files a source has: local folders and S3 prefixes walked along the source's patterns."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.table.patterns import Accepts, AmbiguousPath, SourcePattern, escaped
from relayout.table.sources import BadFile, PathValues, SourceFile

if TYPE_CHECKING:
    from relayout.read.objects import ObjectStore


@dataclass(frozen=True, slots=True)
class Listing:
    """What the patterns of one source mean, each file once, in path order.

    `unmatched` are the patterns that mean no file at all, good or bad. An empty listing is not a deletion: the
    folder may not be mounted.
    """

    files: tuple[SourceFile, ...]
    bad: tuple[BadFile, ...] = ()
    unmatched: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def list_source(
    patterns: Sequence[str], base_dir: str, accepts: Accepts, objects: ObjectStore | None = None
) -> Listing:
    """List the files of all patterns; relative ones start at `base_dir`, `accepts` knows the columns' types."""
    files: dict[str, SourceFile] = {}
    bad: dict[str, str] = {}
    unmatched = []
    remembered = _remembering(accepts)
    for text in patterns:
        pattern = SourcePattern.parse(text if _is_absolute(text) else f"{escaped(base_dir.rstrip('/'))}/{text}")
        found = 0
        tell = _told_by_folder(pattern, remembered)
        for entry in _entries(pattern, objects):
            found += 1
            file = entry if isinstance(entry, BadFile) else tell(entry)
            if isinstance(file, BadFile):
                bad[_printable(file.path)] = file.reason
            elif files.setdefault(file.path, file).path_values != file.path_values:
                bad[file.path] = "two patterns of the source read its path differently"
        if not found:
            unmatched.append(text)
    good = sorted((file for path, file in files.items() if path not in bad), key=lambda file: file.path)
    return Listing(tuple(good), tuple(BadFile(path, bad[path]) for path in sorted(bad)), tuple(unmatched))


def _is_absolute(text: str) -> bool:
    return text.startswith("/") or "://" in text


def _printable(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def _remembering(accepts: Accepts) -> Accepts:
    # Paths repeat few values many times, and asking a type costs more than the rest of the match.
    known: dict[tuple[str, str], bool] = {}

    def answer(column: str, text: str) -> bool:
        key = (column, text)
        if key not in known:
            known[key] = accepts(column, text)
        return known[key]

    return answer


def _told_by_folder(pattern: SourcePattern, accepts: Accepts) -> Callable[[SourceFile], SourceFile | BadFile]:
    """What a path says, looked up by its folder where file names say nothing: folders are few and files are many."""
    if pattern.segments[-1].columns:
        return lambda file: _told(pattern, file, accepts)
    known: dict[str, SourceFile | BadFile] = {}

    def tell(file: SourceFile) -> SourceFile | BadFile:
        folder = file.path.rpartition("/")[0]
        like = known.get(folder)
        if like is None:
            like = known[folder] = _told(pattern, file, accepts)
        return BadFile(file.path, like.reason) if isinstance(like, BadFile) else _with_values(file, like.path_values)

    return tell


def _told(pattern: SourcePattern, file: SourceFile, accepts: Accepts) -> SourceFile | BadFile:
    try:
        values = pattern.match(file.path, accepts)
    except AmbiguousPath as problem:
        return BadFile(file.path, problem.what)
    if values is None:
        return BadFile(file.path, f"no part of its path has the type of {' and '.join(pattern.columns)}")
    return _with_values(file, values)


def _with_values(file: SourceFile, values: PathValues) -> SourceFile:
    if not values:
        return file
    return SourceFile(file.path, file.size_bytes, file.modified_ns, file.changed_ns, file.etag, values)


def _entries(pattern: SourcePattern, objects: ObjectStore | None) -> Iterator[SourceFile | BadFile]:
    if not pattern.root.startswith("s3://"):
        yield from _Walk(pattern).files()
        return
    if objects is None:
        from relayout.read.objects import ObjectStore

        objects = ObjectStore.from_properties({})
    start = pattern.root.rstrip("/") + "/"
    for file in objects.list(pattern.root):
        if _outlined(pattern, file.path[len(start) :].split("/")):
            yield file


def _outlined(pattern: SourcePattern, names: list[str]) -> bool:
    states = _closed(pattern, {0})
    for name in names[:-1]:
        states = _after(pattern, states, name)
    return bool(names[-1]) and _ends_at(pattern, states, names[-1])


def _closed(pattern: SourcePattern, states: Set[int]) -> frozenset[int]:
    """`**` may stand for no folder at all, so what follows it is possible too."""
    closed = set(states)
    # A deep segment is never the last one, so each has a successor.
    for state, segment in enumerate(pattern.segments):
        if segment.deep and state in closed:
            closed.add(state + 1)
    return frozenset(closed)


def _after(pattern: SourcePattern, states: frozenset[int], folder: str) -> frozenset[int]:
    following = set()
    last = len(pattern.segments) - 1
    for state in states:
        segment = pattern.segments[state]
        if (segment.deep or state < last) and segment.fits(folder):
            following.add(state if segment.deep else state + 1)
    return _closed(pattern, following)


def _ends_at(pattern: SourcePattern, states: frozenset[int], name: str) -> bool:
    last = len(pattern.segments) - 1
    return last in states and pattern.segments[last].fits(name)


class _Walk:
    """One walk over local folders; only folders that the pattern can mean are opened."""

    def __init__(self, pattern: SourcePattern) -> None:
        self._pattern = pattern

    def files(self) -> Iterator[SourceFile | BadFile]:
        root = self._pattern.root
        try:
            found = os.stat(root)
        except OSError:
            # What is wrong with the root is told where it is opened.
            above: tuple[tuple[int, int], ...] = ()
        else:
            above = ((found.st_dev, found.st_ino),) if self._pattern.last_deep >= 0 else ()
        yield from self._folder(root, _closed(self._pattern, {0}), above)

    def _folder(
        self, folder: str, states: frozenset[int], above: tuple[tuple[int, int], ...]
    ) -> Iterator[SourceFile | BadFile]:
        start = folder.rstrip("/") + "/"
        if (names := self._only_names(states)) is not None:
            for name in names:
                yield from self._named(start + name, name, states, above)
            return
        try:
            with os.scandir(folder) as entries:
                listed = list(entries)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as problem:
            yield BadFile(folder, f"the folder cannot be listed: {problem.strerror}")
            return
        for entry in listed:
            yield from self._entry(entry, start, states, above)

    def _entry(
        self, entry: os.DirEntry[str], start: str, states: frozenset[int], above: tuple[tuple[int, int], ...]
    ) -> Iterator[SourceFile | BadFile]:
        path = start + entry.name
        try:
            if entry.is_dir():
                yield from self._inside(path, entry.name, states, above, entry.is_symlink)
            elif _ends_at(self._pattern, states, entry.name):
                yield _file(path, entry.stat())
        except OSError as problem:
            if _ends_at(self._pattern, states, entry.name):
                yield _unreadable(path, problem)

    def _named(
        self, path: str, name: str, states: frozenset[int], above: tuple[tuple[int, int], ...]
    ) -> Iterator[SourceFile | BadFile]:
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError) as problem:
            if os.path.islink(path):
                yield _unreadable(path, problem)
            return
        except OSError as problem:
            yield _unreadable(path, problem)
            return
        if not stat.S_ISDIR(found.st_mode):
            if _ends_at(self._pattern, states, name):
                yield _file(path, found)
        elif _ends_at(self._pattern, states, name):
            yield BadFile(path, "a folder, not a file: write /* or /**/* behind it")
        else:
            yield from self._inside(path, name, states, above, lambda: os.path.islink(path))

    def _inside(
        self,
        path: str,
        name: str,
        states: frozenset[int],
        above: tuple[tuple[int, int], ...],
        is_link: Callable[[], bool],
    ) -> Iterator[SourceFile | BadFile]:
        following = _after(self._pattern, states, name)
        if not following:
            return
        if is_link():
            found = os.stat(path)
            if (found.st_dev, found.st_ino) in above:
                yield BadFile(path, "a link to a folder that holds it")
                return
            above = (*above, (found.st_dev, found.st_ino))
        elif self._pattern.last_deep >= 0:
            found = os.stat(path)
            above = (*above, (found.st_dev, found.st_ino))
        yield from self._folder(path, following, above)

    def _only_names(self, states: frozenset[int]) -> tuple[str, ...] | None:
        """The names that alone can follow, None where a listing is needed to know them."""
        names = []
        for state in states:
            literal = self._pattern.segments[state].literal
            if literal is None:
                return None
            names.append(literal)
        return tuple(names)


def _file(path: str, found: os.stat_result) -> SourceFile | BadFile:
    if not stat.S_ISREG(found.st_mode):
        return BadFile(path, f"{_kind(found.st_mode)}, not a file")
    if not path.isascii() and _printable(path) != path:
        return BadFile(path, "its name is not UTF-8")
    return SourceFile(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _unreadable(path: str, problem: OSError) -> BadFile:
    if isinstance(problem, FileNotFoundError):
        return BadFile(path, "a link to nothing")
    return BadFile(path, f"cannot be opened: {problem.strerror}")


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
