"""S3 as moto plays it, in memory; pip installs it with everything that development needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from crosscheck.services.processes import LOOPBACK, NotObtainable, free_port, listens, running
from crosscheck.services.store import Store


@contextmanager
def moto(folder: Path) -> Iterator[Store]:
    """An S3 server that forgets everything at its end."""
    if find_spec("moto") is None:
        raise NotObtainable("moto is not installed")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    with running(command, folder / "moto.log", answers=lambda: listens(port)):
        yield Store(f"http://{LOOPBACK}:{port}", "key", "secret").with_bucket()
