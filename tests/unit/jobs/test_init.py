"""`relayout init`: what it writes is valid, small, always the same, and never lands on somebody's file."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest

from relayout.config import load
from relayout.errors import UsageError
from relayout.ingest.plan import Reason
from relayout.jobs.init import init
from relayout.jobs.plan import Planner
from relayout.table.schemas import TableSchema


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path_factory.mktemp("cache")))


def no_spark(_: TableSchema, open_columns: object) -> dict[str, str]:
    raise AssertionError(f"the sample's first plan needs Spark for {open_columns}")


def digest(folder: Path, files: tuple[Path, ...]) -> str:
    told = hashlib.sha256()
    for file in sorted(files):
        told.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return told.hexdigest()


def test_the_first_plan_of_a_fresh_folder_needs_nothing_but_what_init_wrote(tmp_path: Path) -> None:
    init(tmp_path / "lake")
    plan = Planner(load(tmp_path / "lake"), no_spark).plan().plan
    batches = {table.table: [str(batch.key) for batch in table.batches] for table in plan.tables}
    assert batches == {
        "regional_income": [f"{{year={year}}}" for year in range(2019, 2024)],
        "employment": [f"{{year={year}, quarter={quarter}}}" for year in (2022, 2023) for quarter in (1, 2, 3, 4)],
        "counties": ["{all}"],
    }
    assert {batch.reason for table in plan.tables for batch in table.batches} == {Reason.NEW}
    assert [(table.table, table.bad_files, table.problem, table.notes) for table in plan.tables] == [
        (name, (), "", ()) for name in batches
    ]
    types = {table.table: dict(table.schema) for table in plan.tables}
    assert types["regional_income"]["geo_fips"] == types["counties"]["geo_fips"] == "string"
    assert types["employment"]["mean_wage_usd"] == "decimal(12,2)"


def test_planning_the_sample_writes_nothing_beside_it(tmp_path: Path) -> None:
    written = init(tmp_path)
    Planner(load(tmp_path), no_spark).plan()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(written)


def test_two_folders_get_the_same_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert digest(one, init(one)) == digest(other, init(other))


def test_the_sample_is_small(tmp_path: Path) -> None:
    assert sum(path.stat().st_size for path in init(tmp_path)) < 200_000


def test_codes_keep_their_leading_zeros(tmp_path: Path) -> None:
    init(tmp_path)
    line = (tmp_path / "downloads/regional_income/CAINC1_2020_county.json").read_text("utf-8").splitlines()[0]
    assert json.loads(line)["geo_fips"] == "01001"
    with (tmp_path / "downloads/counties.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.DictReader(file))["geo_fips"] == "01001"


def test_a_second_init_changes_nothing_and_names_what_is_in_the_way(tmp_path: Path) -> None:
    written = init(tmp_path)
    (tmp_path / "relayout.yaml").write_text("mine", "utf-8")
    before = digest(tmp_path, written)
    with pytest.raises(UsageError) as caught:
        init(tmp_path)
    assert caught.value.where.splitlines()[0] == str(tmp_path / "relayout.yaml")
    assert caught.value.where.splitlines()[-1].strip() == "and 15 more"
    assert digest(tmp_path, written) == before


def test_one_file_in_the_way_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "counties.csv").write_text("mine", "utf-8")
    with pytest.raises(UsageError) as caught:
        init(tmp_path)
    assert caught.value.where == str(tmp_path / "downloads" / "counties.csv")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "downloads" / "counties.csv"]


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "relayout.yaml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError):
        init(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_in_place_of_the_folder_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file", "utf-8")
    with pytest.raises(UsageError) as caught:
        init(tmp_path / "lake")
    assert caught.value.what == "the sample cannot be written: Not a directory"
