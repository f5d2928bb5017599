"""versitygw: an S3 gateway over a folder, in Go, and so a second opinion about what S3 is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosscheck.services.packages import last_line, program
from crosscheck.services.processes import LOOPBACK, NotObtainable, free_port, listens, quiet_environment, running
from crosscheck.services.store import REGION, Store

MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
BUILD_SECONDS = 1200


@contextmanager
def versitygw(folder: Path, built: Path) -> Iterator[Store]:
    """A gateway over a fresh folder; the binary is built once into `built`."""
    binary = _binary(built)
    port = free_port()
    data = folder / "versitygw"
    data.mkdir()
    keys = {"ROOT_ACCESS_KEY": "relayout", "ROOT_SECRET_KEY": "crosscheck"}
    command = [str(binary), "--port", f"{LOOPBACK}:{port}", "--region", REGION, "posix", str(data)]
    with running(
        command, folder / "versitygw.log", answers=lambda: listens(port), environment=quiet_environment(**keys)
    ):
        yield Store(f"http://{LOOPBACK}:{port}", keys["ROOT_ACCESS_KEY"], keys["ROOT_SECRET_KEY"]).with_bucket()


def _binary(built: Path) -> Path:
    binary = built / "versitygw"
    if binary.exists():
        return binary
    if found := shutil.which("versitygw"):
        return Path(found)
    go = program("go", "golang-go")
    built.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "GOBIN": str(built)}
    answer = subprocess.run(
        [go, "install", MODULE], env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    if answer.returncode != 0:
        raise NotObtainable(f"versitygw could not be built: {last_line(answer.stderr)}")
    return binary
