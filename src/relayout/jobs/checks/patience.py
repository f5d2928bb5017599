"""Waiting for something outside this process, but not for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from relayout.errors import EnvironmentProblem

Answer = TypeVar("Answer")


def within(seconds: float, whom: str, ask: Callable[[], Answer], next: str = "") -> Answer:
    """The answer, or an EnvironmentProblem when there is none in time; the asking thread dies with the process."""
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(ask())
        except BaseException as error:  # noqa: BLE001
            # Whatever it is, it belongs to the thread that waits.
            future.set_exception(error)

    threading.Thread(target=run, name=f"relayout-doctor {whom}", daemon=True).start()
    try:
        return future.result(timeout=seconds)
    except TimeoutError as error:
        if future.done():
            raise
        raise EnvironmentProblem(f"{whom} did not answer within {seconds:.0f} seconds", next=next) from error
