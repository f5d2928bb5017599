"""A diagnosis as text: one line for each check, the fix below what needs one, the verdict at the end."""

from __future__ import annotations

from relayout.report.columns import GAP, padded, widths_of, wrapped
from relayout.report.printable import one_line
from relayout.report.sections import WIDTH
from relayout.table.quantities import count_text
from relayout.upkeep.findings import Diagnosis, Finding, State

_MARKS = {State.OK: "ok", State.WARNING: "warn", State.PROBLEM: "FAIL"}


def doctor_text(diagnosis: Diagnosis, *, width: int = WIDTH) -> str:
    """The whole diagnosis in lines of about `width`."""
    columns = widths_of([(_MARKS[finding.state], finding.check) for finding in diagnosis.findings])
    lines = [line for finding in diagnosis.findings for line in _told(finding, columns, width)]
    return "\n".join([*lines, _verdict(diagnosis)])


def _told(finding: Finding, columns: list[int], width: int) -> list[str]:
    cells = zip((_MARKS[finding.state], finding.check), columns, strict=True)
    head = GAP.join(padded(text, room) for text, room in cells) + GAP
    indent = " " * len(head)
    lines = wrapped(one_line(finding.what), width, indent, head)
    if finding.next:
        lines += wrapped(one_line(finding.next), width, f"{indent}     ", f"{indent}fix: ")
    return lines


def _verdict(diagnosis: Diagnosis) -> str:
    problems, warnings = len(diagnosis.of(State.PROBLEM)), len(diagnosis.of(State.WARNING))
    if problems:
        told = count_text(problems, "problem") + (f", {count_text(warnings, 'warning')}" if warnings else "")
        return f"Not ready: {told}."
    return f"Ready, with {count_text(warnings, 'warning')}." if warnings else "Ready."
