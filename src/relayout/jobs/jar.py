"""The routing rule as a file, for servers that relayout does not start."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relayout.config import from_mapping
from relayout.errors import EnvironmentProblem
from relayout.spark.jvm.routing import routing_jar
from relayout.spark.route.jar import EXTENSION
from relayout.spark.session import EXTENSIONS, start_session


@dataclass(frozen=True, slots=True)
class WrittenJar:
    """Where the jar is, and what a server must be started with."""

    file: Path

    @property
    def options(self) -> tuple[str, ...]:
        return (f"--jars {self.file}", f"--conf spark.sql.extensions={EXTENSIONS},{EXTENSION}")

    @property
    def text(self) -> str:
        return f"wrote {self.file}\nnext: start the server with\n  " + "\n  ".join(self.options)

    def to_json(self) -> dict[str, Any]:
        return {"schema": 1, "kind": "jar", "written": str(self.file), "options": list(self.options)}


def write_jar(file: Path) -> WrittenJar:
    """Compile the rule with the compiler inside Spark and write its jar; no configuration is needed."""
    with tempfile.TemporaryDirectory(prefix="relayout-jar-") as scratch:
        config = from_mapping({"warehouse": scratch, "spark": {"master": "local[1]", "driver_memory": "1g"}})
        made = routing_jar(start_session(config))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, file)
    except OSError as error:
        raise EnvironmentProblem(
            f"the jar cannot be written: {error.strerror}", where=str(file), next="name another file with -o"
        ) from error
    return WrittenJar(file)
