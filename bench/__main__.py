"""`python -m bench [NAME …]`: run the named benchmarks, or all, and render the page from every result there is.

With `--small` they run on a tenth of the data, show what they found and write nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

from bench.ingest import ingest_year, ingest_year_region
from bench.memory import ingest_memory
from bench.page import documents_in, page
from bench.places import PAGE, RESULTS
from bench.planning import plan_million
from bench.results import Result
from bench.rewrites import compact_binpack, compact_deletes, compact_many_partitions, hilbert, zorder
from bench.route import route_workload

BENCHMARKS: Mapping[str, Callable[[bool], Result]] = {
    "ingest_year": ingest_year,
    "ingest_year_region": ingest_year_region,
    "plan_million": plan_million,
    "ingest_memory": ingest_memory,
    "route_workload": route_workload,
    "compact_binpack": compact_binpack,
    "compact_many_partitions": compact_many_partitions,
    "compact_deletes": compact_deletes,
    "zorder": zorder,
    "hilbert": hilbert,
}


def main(arguments: list[str]) -> int:
    small = "--small" in arguments
    names = [name for name in arguments if name != "--small"]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.stderr.write(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}\n")
        return 2
    for name in names or BENCHMARKS:
        print(name, flush=True)
        result = BENCHMARKS[name](small)
        if small:
            print(json.dumps(result.to_json(), indent=2))
        else:
            result.write(RESULTS)
    if not small:
        PAGE.write_text(page(documents_in(RESULTS)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
