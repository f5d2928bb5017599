"""What `relayout doctor` found, as a person reads it."""

from __future__ import annotations

from collections.abc import Callable

from relayout.report.doctor_text import doctor_text
from relayout.upkeep.findings import Diagnosis, Finding, State

Golden = Callable[[str, str], None]

PYTHON = Finding("python", State.OK, "Python 3.11.9 (/srv/lake/.venv/bin/python)")
JAVA = Finding("Java", State.OK, "Java 17 from PATH (/usr/lib/jvm/java-17)")
MEMORY = Finding(
    "memory",
    State.WARNING,
    "driver_memory 4g + 2 x task_memory 1g = 6.4 GB; this machine has 4.1 GB",
    "below `spark:` in relayout.yaml write `driver_memory: 1536m`, `task_memory: 768m`",
)
FOLDER = Finding("catalog", State.WARNING, "a folder catalog: two writers at once can lose a commit")
CONFIGURATION = Finding(
    "configuration",
    State.PROBLEM,
    "unknown key 'pattern' (lake/relayout.yaml:12, tables.income.pattern)",
    "write `source`",
)
CATALOG = Finding(
    "catalog",
    State.PROBLEM,
    "the jdbc catalog cannot be read: connection refused\nIs the server running on that host and accepting "
    "connections? (postgresql://lakes.example:5432/lake)",
    "check catalog.uri and its login, and that the server runs and can be reached from here",
)
SPARK = Finding("Spark", State.WARNING, "not tried, because of what was found for catalog")


def test_a_machine_in_order_is_told_line_by_line(golden: Golden) -> None:
    golden("doctor_ready.txt", doctor_text(Diagnosis((PYTHON, JAVA))))


def test_warnings_stop_nothing_and_come_with_their_fix_where_there_is_one(golden: Golden) -> None:
    golden("doctor_warnings.txt", doctor_text(Diagnosis((PYTHON, JAVA, MEMORY, FOLDER))))


def test_problems_are_told_with_their_fix_and_nothing_breaks_out_of_its_line(golden: Golden) -> None:
    golden("doctor_not_ready.txt", doctor_text(Diagnosis((PYTHON, CONFIGURATION, JAVA, MEMORY, CATALOG, SPARK))))
