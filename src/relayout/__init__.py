"""relayout keeps Iceberg tables and Parquet folders laid out for how they are read.

What is public here is imported on first use, so that `import relayout` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relayout.api import attach, open
    from relayout.compact.plan import FilterStats, RewriteDataFilesPlanningResult
    from relayout.errors import (
        CommitConflict,
        CommitUnknown,
        ConfigError,
        ConfigProblem,
        EngineError,
        EnvironmentProblem,
        MissingError,
        NotRouted,
        PlanRefused,
        PlanStale,
        RelayoutError,
        Retry,
        SchemaConflict,
        SourceError,
        UsageError,
    )
    from relayout.jobs.rewrite_planner import RewritePlanner
    from relayout.table.partition_keys import PartitionKey

__version__ = "0.1.0"

__all__ = [
    "CommitConflict",
    "CommitUnknown",
    "ConfigError",
    "ConfigProblem",
    "EngineError",
    "EnvironmentProblem",
    "FilterStats",
    "MissingError",
    "NotRouted",
    "PartitionKey",
    "PlanRefused",
    "PlanStale",
    "RelayoutError",
    "Retry",
    "RewriteDataFilesPlanningResult",
    "RewritePlanner",
    "SchemaConflict",
    "SourceError",
    "UsageError",
    "__version__",
    "attach",
    "open",
]

_HOMES = {
    "FilterStats": "relayout.compact.plan",
    "PartitionKey": "relayout.table.partition_keys",
    "RewriteDataFilesPlanningResult": "relayout.compact.plan",
    "RewritePlanner": "relayout.jobs.rewrite_planner",
    "attach": "relayout.api",
    "open": "relayout.api",
}


def __getattr__(name: str) -> object:
    """Resolve a public name from its home; what is not named here is an error and lives in `relayout.errors`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "relayout.errors")), name)


def __dir__() -> list[str]:
    return list(__all__)
