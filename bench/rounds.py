"""Rounds: every side does the same work in turn, so that whatever else the machine does falls on all of them."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.places import fresh_folder


@dataclass(frozen=True, slots=True)
class Prepared:
    """`work` is what is timed; `checksum` reads what it made and says it in a form that can be compared."""

    work: Callable[[], object]
    checksum: Callable[[], object]


Side = Callable[[Path], Prepared]
"""Gets an empty folder and does everything that is not timed."""

Samples = dict[str, list[float]]


def interleaved(sides: Mapping[str, Side], rounds: int) -> Samples:
    """Seconds of every round by side; a side that makes something else than the first one ends the run."""
    samples: Samples = {name: [] for name in sides}
    for number in range(rounds):
        expected: object = None
        for name, side in sides.items():
            with fresh_folder(f"{name}-{number}") as folder:
                prepared = side(folder)
                samples[name].append(seconds_of(prepared.work))
                made = prepared.checksum()
                expected = made if expected is None else expected
                if made != expected:
                    raise AssertionError(f"{name} made {made}, {next(iter(sides))} made {expected}")
            print(f"  round {number + 1}: {name} {samples[name][-1]:.2f} s", flush=True)
    return samples


def seconds_of(work: Callable[[], object]) -> float:
    """Wall-clock seconds, after leftovers of the work before are out of the way."""
    gc.collect()
    os.sync()
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def medians(samples: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in samples.items()}
