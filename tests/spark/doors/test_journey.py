"""The way of a new user, from an empty folder to a table that is up to date."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relayout.jobs.init import init

pytestmark = pytest.mark.spark

# The command line, and a failure if it started a JVM.
WATCHED = """
import sys
from relayout.cli import main
sys.argv = ["relayout", *sys.argv[1:]]
code = main()
spark = sys.modules.get("pyspark")
sys.exit("a JVM was started" if spark and spark.SparkContext._gateway else code)
"""


def without_jvm(lake: Path, *words: str) -> tuple[int, Any]:
    command = [sys.executable, "-c", WATCHED, "-c", str(lake), *words, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout, ended.stderr
    assert "a JVM was started" not in ended.stderr
    return ended.returncode, json.loads(ended.stdout)


@pytest.mark.usefixtures("make_lake")
def test_a_new_user_gets_from_an_empty_folder_to_tables_that_are_up_to_date(
    relayout: Callable[..., Any], tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    init(lake)
    (lake / "relayout.yaml").write_text((lake / "relayout.yaml").read_text() + "\nspark: {driver_memory: 1g}\n")
    # Until something must be written, nothing but Python runs, and nothing is written.
    code, plan = without_jvm(lake, "plan", "regional_income")
    assert (code, plan["tables"][0]["change"]) == (1, "create")
    assert without_jvm(lake, "status")[0] == 0
    assert not (lake / "lake").exists()

    stored = tmp_path / "plan.json"
    assert relayout("plan", "-o", str(stored)).code == 1
    county = lake / "downloads/regional_income/CAINC1_2019_county.json"
    more = county.with_name("CAINC9_2019_county.json")
    more.write_text(county.read_text())
    refused = relayout("apply", "--plan", str(stored), "--json")
    assert refused.code == 2
    assert refused.document["error"] == "PlanStale"
    assert "batch {year=2019}: its source files changed (2 then, 3 now)" in refused.document["what"]
    more.unlink()
    applied = relayout("apply", "--plan", str(stored), "--json")
    assert applied.code == 0
    assert (applied.document["done"], applied.document["rows"]) == (14, 880)
    again = relayout("apply", "--plan", str(stored), "--json")
    assert (again.code, again.document["error"]) == (2, "PlanStale")

    rows = relayout("sql", "SELECT year, count(*) AS n FROM regional_income GROUP BY 1 ORDER BY 1", "--format", "csv")
    assert rows.out == "year,n\n2019,96\n2020,96\n2021,96\n2022,96\n2023,96\n"

    # What there is to see is seen without Spark.
    code, plan = without_jvm(lake, "plan")
    assert (code, plan["has_work"], [table["done"] for table in plan["tables"]]) == (0, False, [5, 8, 1])
    code, status = without_jvm(lake, "status", "regional_income")
    assert (code, status["tables"][0]["table"]) == (0, "regional_income")
    for verb in ("apply", "retry"):
        code, receipt = without_jvm(lake, verb)
        assert (code, receipt["done"], receipt["complete"]) == (0, 0, True)
    code, marked = without_jvm(lake, "invalidate", "regional_income", "--batch", "year=2020", "--dry-run")
    assert (code, [batch["batch"] for batch in marked["batches"]]) == (1, [{"year": 2020}])
    assert without_jvm(lake, "invalidate", "regional_income", "--batch", "year=1900")[0] == 2

    assert relayout("invalidate", "regional_income", "--batch", "year=2020").code == 0
    pending = relayout("plan", "--json").document["tables"][0]["batches"]
    assert [(batch["key"], batch["reason"]) for batch in pending] == [({"year": 2020}, "invalidated")]
    assert relayout("retry").code == 0
    done = relayout("apply", "--json").document
    assert (done["done"], done["rows"]) == (1, 96)
    assert relayout("plan").code == 0
