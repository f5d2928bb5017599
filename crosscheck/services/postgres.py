"""PostgreSQL as the database behind a JDBC catalog."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crosscheck.services.packages import installed
from crosscheck.services.processes import LOOPBACK, NotObtainable, free_port, quiet_environment, running

USER = "relayout"
PASSWORD = "cross check"
DATABASE = "postgres"


@dataclass(frozen=True, slots=True)
class Database:
    """An empty database that asks for a password."""

    port: int

    @property
    def jdbc_uri(self) -> str:
        return f"jdbc:postgresql://{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def properties(self) -> dict[str, str]:
        return {"jdbc.user": USER, "jdbc.password": PASSWORD}


@contextmanager
def postgres(folder: Path) -> Iterator[Database]:
    """A server with a data folder of its own; it refuses to run as root, so root hands it to somebody else."""
    binaries = Path(installed(_binaries, "postgresql", "PostgreSQL's server"))
    user = _other_user() if os.geteuid() == 0 else None
    data = folder / "postgres"
    data.mkdir()
    secret = data.with_suffix(".password")
    secret.write_text(PASSWORD)
    if user is not None:
        for path in (data, secret):
            shutil.chown(path, user)
    environment = quiet_environment()
    made = [
        str(binaries / "initdb"), "--pgdata", str(data), "--username", USER, "--pwfile", str(secret),
        "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync",
    ]  # fmt: skip
    subprocess.run(made, user=user, env=environment, cwd="/", capture_output=True, check=True)
    port = free_port()
    settings = {"listen_addresses": LOOPBACK, "port": str(port), "unix_socket_directories": "", "fsync": "off"}
    command = [str(binaries / "postgres"), "-D", str(data)]
    command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    log = folder / "postgres.log"
    ready = [str(binaries / "pg_isready"), "--quiet", "--host", LOOPBACK, "--port", str(port)]

    def answers() -> bool:
        return subprocess.run(ready, check=False).returncode == 0

    with running(command, log, answers=answers, environment=environment, folder=Path("/"), user=user):
        yield Database(port)


def _binaries() -> str | None:
    """The newest installation that holds the server; Debian keeps its programs off the PATH."""
    places = [Path(found).parent for found in [shutil.which("initdb")] if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        real = (place / "initdb").resolve().parent
        if all((real / name).exists() for name in ("initdb", "postgres", "pg_isready")):
            return str(real)
    return None


def _other_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise NotObtainable("PostgreSQL does not run as root, and there is no user postgres or nobody")
