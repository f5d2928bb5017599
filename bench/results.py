"""Results files: one JSON document per benchmark, with the raw seconds and the versions that were measured."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from relayout import __version__
from relayout.spark.jars import ICEBERG


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark's figures; seconds are medians, `more` holds keys that only some benchmarks have."""

    name: str
    ours_seconds: float
    peer: str
    peer_seconds: float | None
    limit_seconds: float | None
    rounds: int
    rows: int
    bytes: int
    samples: Mapping[str, list[float]]
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        return None if self.peer_seconds is None else self.peer_seconds / self.ours_seconds

    def to_json(self) -> dict[str, Any]:
        told = asdict(self)
        more = told.pop("more")
        samples = told.pop("samples")
        told |= {"ratio": self.ratio, "versions": versions(), "date": datetime.now(UTC).date().isoformat()}
        return rounded(told | {"machine": machine(), "samples": samples} | more)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.name}.json"
        file.write_text(json.dumps(self.to_json(), indent=2) + "\n", "utf-8")
        return file


def versions() -> dict[str, str]:
    """What was measured, and on which Python."""
    libraries = {name: version(name) for name in ("pyspark", "pyiceberg", "duckdb", "pyarrow")}
    return {
        "relayout": __version__,
        "iceberg": ICEBERG.version,
        **libraries,
        "python": platform.python_version(),
    }


def machine() -> dict[str, Any]:
    """What the figures depend on, and nothing that names the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": os.cpu_count(), "memory_bytes": memory, "system": f"{platform.system()} {platform.machine()}"}


def rounded(value: Any) -> Any:
    """Milliseconds are as fine as a clock on a busy machine tells anything."""
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value
