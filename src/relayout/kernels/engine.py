"""One DuckDB connection inside a Spark task: bounded memory, a scratch folder to spill to, nothing left behind."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relayout.table.duckdb_text import SESSION_SETTINGS, text_literal

if TYPE_CHECKING:
    import duckdb

SHARE_OF_MEMORY = 0.7
"""What DuckDB may plan with; the rest is Python, Arrow and buffers that it does not count."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A connection and the folder that belongs to it alone."""

    connection: duckdb.DuckDBPyConnection
    folder: Path


@contextmanager
def engine(scratch: str, memory_bytes: int, *, keeps_order: bool) -> Iterator[Engine]:
    """Have an engine for as long as the block runs; `scratch` empty means the machine's own temporary folder."""
    import duckdb

    folder = Path(scratch or tempfile.gettempdir()) / f"task-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    connection = duckdb.connect()
    try:
        for setting in (
            "SET threads = 1",
            f"SET memory_limit = '{int(memory_bytes * SHARE_OF_MEMORY)}B'",
            f"SET temp_directory = {text_literal(str(folder / 'spill'))}",
            f"SET preserve_insertion_order = {'true' if keeps_order else 'false'}",
            "SET enable_progress_bar = false",
            *SESSION_SETTINGS,
        ):
            connection.execute(setting)
        yield Engine(connection, folder)
    finally:
        connection.close()
        shutil.rmtree(folder, ignore_errors=True)
