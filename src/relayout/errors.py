"""Every error a user can meet: what happened, where, what to do next, and whether trying again can help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Retry(StrEnum):
    """Whether the same call may be made again: as it is, after planning anew, or not at all."""

    SAFE = "safe"
    REPLAN = "replan"
    NEVER = "never"


class RelayoutError(Exception):
    """The root of all expected failures; the CLI prints it without a traceback and exits with 2."""

    retry: Retry = Retry.NEVER

    def __init__(self, what: str, *, where: str = "", next: str = "", retry: Retry | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.next = next
        if retry is not None:
            self.retry = retry

    def __str__(self) -> str:
        lines = [("what", self.what), ("where", self.where), ("next", self.next)]
        return "\n".join(f"{label:<5}  {text}" for label, text in lines if text)

    def to_json(self) -> dict[str, str]:
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "next": self.next,
            "retry": self.retry.value,
        }


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing that is wrong in a configuration file; `line` counts from 1, 0 where there is no line."""

    file: str
    line: int
    key: str
    what: str
    next: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.key}: {self.what}" + (f" ({self.next})" if self.next else "")


class ConfigError(RelayoutError, ValueError):
    """All problems of one configuration at once."""

    def __init__(self, problems: tuple[ConfigProblem, ...], next: str = "") -> None:
        count = len(problems)
        super().__init__(
            f"{count} problem{'s' if count != 1 else ''} in the configuration",
            where="\n       ".join(str(problem) for problem in problems),
            next=next or "correct these lines; nothing was read or written",
        )
        self.problems = problems


class UsageError(RelayoutError, ValueError):
    """A call whose arguments do not fit."""


class MissingError(RelayoutError, FileNotFoundError):
    """Something that was named does not exist."""

    # OSError formats itself from errno and strerror, so the shared rendering is chosen explicitly.
    __str__ = RelayoutError.__str__


class SourceError(RelayoutError):
    """Source files that cannot be listed or read."""


class SchemaConflict(RelayoutError):
    """Data whose types do not fit the table."""


class EnvironmentProblem(RelayoutError):
    """Java, jars, memory or a service that relayout needs is missing or unsuitable."""


class PlanRefused(RelayoutError):
    """A plan that must not run as asked."""


class NotRouted(RelayoutError):
    """A query that had to be served by another layout and cannot be."""


class PlanStale(RelayoutError):
    """The world moved between plan and apply in a way that matters."""

    retry = Retry.REPLAN


class CommitConflict(RelayoutError):
    """A commit that certainly did not land because somebody else's did."""

    retry = Retry.REPLAN


class CommitUnknown(RelayoutError):
    """A commit of which nobody knows whether it landed; its files must not be deleted."""

    retry = Retry.REPLAN


class EngineError(RelayoutError):
    """Spark, the JVM or a kernel failed."""

    retry = Retry.SAFE
