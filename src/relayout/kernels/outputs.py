"""What tasks say of the files they wrote, gathered by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayout.table.batches import BatchKey

Result = Mapping[str, Any]
"""The decoded answer of one task: `outputs` for its target, and `others` in the order of its other targets."""

FilesByBatch = Mapping[BatchKey, tuple[Mapping[str, Any], ...]]


@dataclass(frozen=True, slots=True)
class LaidOut:
    """What several tasks wrote for one target: files by batch, or an error and the files it left.

    `seconds` is what it took in addition to whatever else the tasks did.
    """

    files: FilesByBatch
    error: str = ""
    left: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that was written."""
        return tuple(str(file["file-path"]) for members in self.files.values() for file in members) + self.left


def by_batch(keys: Iterable[BatchKey], outputs: Iterable[Result]) -> FilesByBatch:
    """Files of each batch; the given batches are there also without files."""
    files: dict[BatchKey, list[Mapping[str, Any]]] = {key: [] for key in keys}
    for output in outputs:
        files.setdefault(BatchKey.from_json(output["batch"]), []).append(output["content"])
    return {key: tuple(members) for key, members in files.items()}


def laid_out(keys: Iterable[BatchKey], parts: Sequence[Sequence[Result] | str], seconds: float = 0.0) -> LaidOut:
    """The files of all parts; where one part failed the others are of no use."""
    outputs = [output for part in parts if not isinstance(part, str) for output in part]
    error = next((part for part in parts if isinstance(part, str)), "")
    if error:
        return LaidOut({}, error, tuple(output["content"]["file-path"] for output in outputs), seconds)
    return LaidOut(by_batch(keys, outputs), seconds=seconds)


def paths_in(result: Result) -> Iterator[str]:
    """All files that one task has written, for whatever target."""
    for outputs in (result.get("outputs", ()), *result.get("others", ())):
        yield from (output["content"]["file-path"] for output in ([] if isinstance(outputs, str) else outputs))
