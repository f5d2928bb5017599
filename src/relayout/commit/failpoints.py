"""Named places where a test can end this process as `kill -9` would.

`RELAYOUT_KILL_AT=name` or `name:3` (the third time the place is passed) arms one; unset, each place costs a look-up.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

PLACES = (
    "run-begins",
    "table-created",
    "files-written",
    "before-commit",
    "after-commit",
    "before-ledger",
    "after-ledger",
    "run-ends",
)

PLACES_OF_ALTERNATES = (
    "alternate-created",
    "alternate-files-written",
    "before-alternate-commit",
    "after-alternate-commit",
)

_passed: Counter[str] = Counter()


def passing(place: str) -> None:
    """Die here if a test asked for it."""
    armed = os.environ.get("RELAYOUT_KILL_AT", "")
    if not armed:
        return
    name, _, count = armed.partition(":")
    if name == place:
        _passed[place] += 1
        if _passed[place] == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
