"""What `relayout compact --dry-run` shows: the plan for a table of the lake, with the defaults of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relayout.compact.options import TARGET_PROPERTY
from relayout.compact.plan import CompactPlan
from relayout.config import Config
from relayout.errors import MissingError
from relayout.jobs.rewrite_planner import RewritePlanner
from relayout.read.catalog import CatalogReader
from relayout.table.names import parse

DEFAULTS: Mapping[str, Any] = {"case_sensitive": False, "prune_by_statistics": True, "min_input_files": 2}
"""As Spark SQL takes names; files that cannot match are left alone; two small files are worth merging."""


def plan_compaction(config: Config, table: str, options: Mapping[str, Any]) -> CompactPlan:
    """The plan, read through PyIceberg alone; options are those of `RewritePlanner`."""
    name = parse(table, config.namespace, config.catalog.name)
    native = CatalogReader(config).load(name)
    if native is None:
        raise MissingError(
            f"there is no table {name}", where=config.catalog.name, next="`relayout status` lists the tables"
        )
    given = {**DEFAULTS, **{key: value for key, value in options.items() if value is not None}}
    if TARGET_PROPERTY not in native.properties:
        given.setdefault("target_file_size_bytes", config.defaults.target_file_mb << 20)
    return RewritePlanner(native, given, name=str(name)).plan()
