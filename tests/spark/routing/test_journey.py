"""Declared alternates are built, followed and used, from the command line on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relayout import cli
from relayout.api import Lake

pytestmark = pytest.mark.spark

BY_FIPS = "select sum(value) as total from income where fips = '01003'"


@pytest.fixture
def lake(make_lake: Callable[..., Lake], tmp_path: Path) -> Lake:
    for year in (2019, 2020, 2021, 2022):
        write(tmp_path, year, factor=1)
    table = {
        "source": str(tmp_path / "in" / "{year}.json"),
        "schema": {"fips": "string"},
        "partitions": {"keys": [{"name": "year", "type": "int"}]},
        "alternate_partitions": [{"name": "by_fips", "partition": {"keys": ["fips"]}, "sort": ["year"]}],
    }
    return make_lake(tmp_path / "lake", {"income": table})


def write(folder: Path, year: int, factor: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    rows = [{"fips": f"0100{place}", "value": factor * year * place} for place in range(5)]
    (folder / "in" / f"{year}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def total(lake: Lake) -> int:
    """The sum, which must be the same from either layout, and must come from the alternate."""
    [routed] = lake.sql(BY_FIPS, require_route=True).collect()
    [unrouted] = lake.sql(BY_FIPS, route=False).collect()
    assert routed == unrouted
    return int(routed.total)


def test_what_is_declared_serves_and_keeps_serving(lake: Lake, tmp_path: Path) -> None:
    assert lake.apply().complete
    assert total(lake) == 3 * (2019 + 2020 + 2021 + 2022)
    write(tmp_path, 2020, factor=10)
    assert lake.apply().complete
    assert total(lake) == 3 * (2019 + 20200 + 2021 + 2022)
    before = lake.table("income").metadata.current_snapshot_id
    lake.sql("delete from income where year = 2022 and fips = '01003'")
    assert total(lake) == 3 * (2019 + 20200 + 2021)
    assert before is not None
    lake.rollback("income", before)
    assert total(lake) == 3 * (2019 + 20200 + 2021 + 2022)
    [status] = lake.status(["income"]).tables
    [alternate] = status.alternates.alternates
    assert alternate.use is not None
    assert alternate.use.used >= 4


def test_the_command_line_explains_requires_and_forbids(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["relayout", "-c", lake.config.file, *words])
        code = cli.main()
        return code, capsys.readouterr().out

    assert lake.apply().complete
    code, told = said("explain", BY_FIPS, "--json")
    document = json.loads(told)
    assert (code, document["kind"], document["routed"]) == (0, "explain", True)
    chosen = document["relations"][0]["chosen"]
    assert chosen.startswith("_mv_")
    assert {layout["layout"]: layout["code"] for layout in document["relations"][0]["layouts"]} == {
        "base": "MORE_BYTES",
        chosen: "CHOSEN",
    }
    code, told = said("explain", BY_FIPS)
    assert code == 0
    assert told.splitlines()[-1] == "Routed"
    rows = json.dumps([[3 * (2019 + 2020 + 2021 + 2022)]])
    for flags in ([], ["--no-route"], ["--require-route"], ["--layout", "by_fips"], ["--layout", "base"]):
        code, told = said("sql", BY_FIPS, "--json", *flags)
        assert (code, json.dumps(json.loads(told)["rows"])) == (0, rows)
    assert said("sql", "select * from income where year = 2020", "--require-route")[0] == 1
    assert said("sql", BY_FIPS, "--layout", "by_moon")[0] == 1
    assert said("sql", BY_FIPS, "--layout", "by_fips", "--no-route")[0] == 2
