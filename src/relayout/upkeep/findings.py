"""What `relayout doctor` found, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from relayout.errors import RelayoutError

DIAGNOSIS_SCHEMA = 1


class State(StrEnum):
    """Whether a check is passed, may cause trouble later, or stops a run."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: the measured facts, also when all is well, and the fix when it is not."""

    check: str
    state: State
    what: str
    next: str = ""

    @classmethod
    def from_error(cls, check: str, error: RelayoutError, instead: str = "") -> Finding:
        """A problem as the error tells it; `instead` replaces advice that is missing or leads back to the doctor."""
        place = " ".join(error.where.split())
        what = f"{error.what} ({place})" if place else error.what
        helps = error.next and "`relayout doctor`" not in error.next
        return cls(check, State.PROBLEM, what, error.next if helps else instead)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, in the order in which the checks build on each other."""

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing stops a run; warnings do not."""
        return not self.of(State.PROBLEM)

    def of(self, state: State) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.state is state)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": DIAGNOSIS_SCHEMA,
            "kind": "diagnosis",
            "healthy": self.healthy,
            "findings": [asdict(finding) for finding in self.findings],
        }
