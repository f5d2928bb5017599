"""Programs that pip does not bring: those that are here are used, others are installed from the system's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

from crosscheck.services.processes import NotObtainable

INSTALL_SECONDS = 900


def program(name: str, package: str) -> str:
    """The path of a program on the PATH; its Debian package is installed when it is not there."""
    return installed(lambda: shutil.which(name), package, name)


def installed(found: Callable[[], str | None], package: str, what: str) -> str:
    """What `found` finds, after an installation of the package if that is needed."""
    here = found()
    if here is None:
        _install(package, what)
        here = found()
    if here is None:
        raise NotObtainable(f"{what} is not there, though the package {package} was installed")
    return here


def _install(package: str, what: str) -> None:
    apt = shutil.which("apt-get")
    if apt is None:
        raise NotObtainable(f"{what} is not installed, and there is no apt-get to bring {package}")
    if os.geteuid() != 0:
        raise NotObtainable(f"{what} is not installed; `apt-get install {package}` brings it, as root")
    # Debian starts a database server as soon as it is installed, unless the machine seems to serve one user only.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        answer = subprocess.run(
            [apt, "--quiet", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        if answer.returncode != 0:
            raise NotObtainable(f"`apt-get {' '.join(arguments)}` failed: {last_line(answer.stderr)}")


def last_line(text: str) -> str:
    """What a failed program said last, which is mostly why."""
    return (text.strip().splitlines() or ["it said nothing"])[-1]
