"""Benchmarks: relayout against Spark doing the same alone, and against the limit of the engine below it.

`make bench` runs them all, writes `bench/results/NAME.json` and renders `docs/performance.md` from what is there.
"""
