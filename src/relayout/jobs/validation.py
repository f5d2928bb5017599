"""Checks of a declaration against what the sources really hold, before any work begins."""

from __future__ import annotations

import difflib

from relayout.config import Config
from relayout.config.model import Table
from relayout.errors import ConfigError, ConfigProblem
from relayout.table.layouts import layout_of, transform_result_type
from relayout.table.schemas import TableSchema


def check_columns(config: Config, declared: Table, schema: TableSchema) -> None:
    """Every column that the declaration names must exist, and every transform must take its column's type."""
    types = {column.name: column.type for column in schema}
    problems: list[ConfigProblem] = []
    layout = layout_of(declared)
    named = [("partitions", field.column) for field in layout.partition]
    named += [("sort", field.column) for field in layout.sort]
    named += [("batch_partition_columns", name) for name in declared.batch_partition_columns]
    named += [("incremental_keys", name) for name in declared.incremental_keys]
    for alternate in declared.alternates:
        where = f"alternate_partitions.{alternate.name}"
        named += [(where, name) for name in layout_of(alternate).columns]
        named += [(where, name) for name in (alternate.cluster.by if alternate.cluster else ())]
        named += [(where, name) for name in (*alternate.batch_partition_columns, *alternate.incremental_keys)]
    for key, column in dict.fromkeys(named):
        if column not in types:
            near = difflib.get_close_matches(column, types, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(types) or 'none'}"
            problems.append(_problem(config, declared, key, f"there is no column {column!r} in the sources", hint))
    levels = [("partitions", field) for field in layout.partition]
    for alternate in declared.alternates:
        levels += [(f"alternate_partitions.{alternate.name}", field) for field in layout_of(alternate).partition]
    for key, field in levels:
        if field.column in types:
            try:
                transform_result_type(field.transform, types[field.column])
            except ValueError as error:
                problems.append(_problem(config, declared, key, str(error).splitlines()[0], ""))
    for name in declared.batch_partition_columns:
        if name in declared.columns:
            what = f"{name!r} is computed by `columns`, so files cannot be assigned to batches by it"
            problems.append(_problem(config, declared, "batch_partition_columns", what, "use a column of the source"))
    if problems:
        raise ConfigError(tuple(problems))


def _problem(config: Config, declared: Table, key: str, what: str, hint: str) -> ConfigProblem:
    return ConfigProblem(config.file, declared.line, f"tables.{declared.name}.{key}", what, hint)
