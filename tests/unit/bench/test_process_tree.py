"""What a benchmark may take is counted over everything it starts, and ends when it is too much."""

from __future__ import annotations

import time

from bench.process_tree import run_within

MUCH = "x = b'x' * 300_000_000; import time; time.sleep({seconds})"
IN_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {MUCH.format(seconds=30)!r}])"


def once(statement: str) -> list[str]:
    return ["timeit", "-n", "1", "-r", "1", statement]


def test_a_tree_within_the_limit_passes_and_its_peak_is_told() -> None:
    ended = run_within(once(MUCH.format(seconds=1)), 2_000_000_000)
    assert ended.passed
    assert "1 loop" in ended.output
    assert 300_000_000 <= ended.peak_bytes < 500_000_000


def test_memory_of_children_counts_and_the_whole_tree_ends() -> None:
    begun = time.monotonic()
    ended = run_within(once(IN_A_CHILD), 200_000_000)
    assert ended.outcome == "took more memory than the limit and was killed"
    assert time.monotonic() - begun < 20


def test_a_failure_is_not_taken_for_a_pass() -> None:
    assert run_within(once("raise ValueError"), 2_000_000_000).outcome == "failed with exit code 1"
