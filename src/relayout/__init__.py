"""relayout keeps Iceberg tables and Parquet folders laid out for how they are read.

What is public here is imported on first use, so that `import relayout` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relayout.api import open
    from relayout.errors import (
        CommitConflict,
        CommitUnknown,
        ConfigError,
        ConfigProblem,
        EngineError,
        EnvironmentProblem,
        MissingError,
        PlanRefused,
        PlanStale,
        RelayoutError,
        Retry,
        SchemaConflict,
        SourceError,
        UsageError,
    )

__version__ = "0.1.0"

__all__ = [
    "CommitConflict",
    "CommitUnknown",
    "ConfigError",
    "ConfigProblem",
    "EngineError",
    "EnvironmentProblem",
    "MissingError",
    "PlanRefused",
    "PlanStale",
    "RelayoutError",
    "Retry",
    "SchemaConflict",
    "SourceError",
    "UsageError",
    "__version__",
    "open",
]


def __getattr__(name: str) -> object:
    """Resolve a public name from its home; errors live in `relayout.errors`, verbs in `relayout.api`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "relayout.api" if name == "open" else "relayout.errors"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return list(__all__)
