"""The folder beside a table's data in which the tasks of one run work; it also tells which runs died.

The process of a run holds a lock on its folder for as long as it lives. A folder whose lock is free belongs to a dead
run: it is emptied, so that tasks which outlived their process cannot finish, and then every data file of that run that
no snapshot refers to is left over. Object stores have no such folder; there only the removal of orphan files helps.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = ".relayout-"
OWNER = "owner"

SILENT_SECONDS = 24 * 3600
"""Locks may not reach from host to host; a run of another one counts as dead when its folder rests this long."""


def is_local(data_location: str) -> bool:
    return data_location.startswith(("/", "file:"))


def scratch_folder(data_location: str, run_id: str) -> Path:
    """Where tasks spill and write: on the disk of a local warehouse, so that files are renamed into place."""
    if not is_local(data_location):
        return Path(tempfile.gettempdir()) / "relayout"
    return _data_folder(data_location) / f"{PREFIX}{run_id}"


@contextmanager
def scratch_of_run(data_location: str, run_id: str) -> Iterator[None]:
    """Have the folder for as long as the block runs; nothing of it stays."""
    if not is_local(data_location):
        yield
        return
    folder = scratch_folder(data_location, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    owner = os.open(folder / OWNER, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX)
        os.write(owner, socket.gethostname().encode())
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)


@contextmanager
def dead_runs(data_location: str) -> Iterator[list[str]]:
    """Ids of runs that died here, their scratch emptied; it is taken away when the block ends well."""
    held: list[tuple[Path, int]] = []
    try:
        for folder in _data_folder(data_location).glob(f"{PREFIX}*") if is_local(data_location) else ():
            owner = _claimed(folder)
            if owner is not None:
                held.append((folder, owner))
                _empty(folder)
        yield [folder.name.removeprefix(PREFIX) for folder, _ in held]
        for folder, _ in held:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        for _, owner in held:
            os.close(owner)


def files_of_run(data_location: str, run_id: str) -> set[str]:
    """Addresses of the data and delete files that carry the run's id."""
    if not is_local(data_location):
        return set()
    root = _data_folder(data_location)
    found = (path.relative_to(root) for path in root.rglob(f"*{run_id}*") if path.is_file())
    return {f"{data_location.rstrip('/')}/{path}" for path in found if not path.parts[0].startswith(PREFIX)}


def _claimed(folder: Path) -> int | None:
    """The lock of a dead run's folder, or None while its run may live."""
    try:
        owner = os.open(folder / OWNER, os.O_RDWR | os.O_CREAT, 0o644)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        host = os.read(owner, 1024).decode(errors="replace")
        if host == socket.gethostname() or time.time() - folder.stat().st_mtime > SILENT_SECONDS:
            return owner
    except (BlockingIOError, FileNotFoundError):
        os.close(owner)
        return None
    os.close(owner)
    return None


def _empty(folder: Path) -> None:
    for member in folder.iterdir():
        if member.is_dir():
            shutil.rmtree(member, ignore_errors=True)


def _data_folder(data_location: str) -> Path:
    return Path(data_location.removeprefix("file:"))
