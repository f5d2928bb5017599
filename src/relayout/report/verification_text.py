"""What `relayout verify` found, for a reader."""

from __future__ import annotations

from typing import Protocol

from relayout.report.alternates_check_text import Verified, alternates_check_text
from relayout.report.printable import one_line, printable
from relayout.report.sections import WIDTH, joined, labelled, listed
from relayout.table.quantities import count_text
from relayout.upkeep.verification import Verification

_MOST_FAULTS = 20


class Checked(Verified, Protocol):
    """A table against its files and its alternates."""

    @property
    def files(self) -> Verification: ...


def verification_text(checked: Checked, *, width: int = WIDTH) -> str:
    """How much was looked at, every fault with its file, then the alternates."""
    found = checked.files
    state = "sound" if found.sound else count_text(len(found.faults), "fault")
    looked_at = (
        f"{count_text(found.manifests, 'manifest')}, {count_text(found.data_files, 'data file')} with "
        f"{count_text(found.rows, 'row')}, {count_text(found.delete_files, 'delete file')}"
    )
    head = [f"Table {printable(found.table)}: {state}", *labelled("looked at", looked_at, width)]
    faults = [f"{fault.check.value}: {printable(fault.file)} {one_line(fault.what)}" for fault in found.faults]
    ending = "Its files are what its metadata says." if found.sound else "Readers may return wrong rows."
    alternates = [alternates_check_text(checked)] if checked.alternates else []
    return joined([head, listed("faults", faults, width, _MOST_FAULTS), [ending], alternates])
