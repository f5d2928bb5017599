"""One side of a loading in a process of its own: `python -m bench.sides.bounded SIDE FOLDER YEARS REGIONS LINES`.

Prints the seconds of the work as its last line; whoever started it watches how much memory it takes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.income import Income
from bench.rounds import seconds_of
from bench.sides.ingestion import Loading

SESSION = {"master": "local[*]", "driver_memory": "512m", "task_memory": "256m"}
"""Small enough that the whole process tree has a chance within the limit; the same for both sides."""


def main(arguments: list[str]) -> int:
    side, folder, *size = arguments
    source = Income(*(int(number) for number in size))
    loading = Loading(source, ["year"], os.cpu_count() or 1, SESSION)
    prepared = {"ours": loading.with_relayout, "peer": loading.with_spark}[side](Path(folder))
    print(f"seconds {seconds_of(prepared.work)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
