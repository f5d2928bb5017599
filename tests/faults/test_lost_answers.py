"""A catalog whose answer to a commit is lost or wrong: no row twice, no row gone, no file deleted that is in use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relayout.commit import batches as committing
from relayout.commit.rewrite_receipts import GroupOutcome
from tests.faults.rest_catalog import Fault, FaultyCatalog, faulty_catalog
from tests.faults.scene import LONG, Scene

YEARS = (2020, 2021)

CONFLICT = 409
CONFLICTS = [Fault(CONFLICT), Fault(CONFLICT, lands_after_seconds=0)]

FAULTS = [
    *CONFLICTS,
    Fault(503),
    Fault(0, lands_after_seconds=0),
    Fault(503, lands_after_seconds=0),
    Fault(504, lands_after_seconds=0),
    Fault(504, lands_after_seconds=0.4),
    Fault(504, lands_after_seconds=2.5),
]
MORE_FAULTS = [
    Fault(0),
    Fault(500),
    Fault(502),
    Fault(504),
    Fault(500, lands_after_seconds=0),
    Fault(502, lands_after_seconds=0),
    Fault(0, lands_after_seconds=0.4),
    Fault(500, lands_after_seconds=2.5),
]


@pytest.fixture(autouse=True)
def short_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lands late here does so while the run still looks for it, or just after it tried again."""
    monkeypatch.setattr(committing, "DOUBT_SECONDS", (0.0, 0.3, 0.7))


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyCatalog]:
    with faulty_catalog(tmp_path_factory.mktemp("rest") / "warehouse") as served:
        yield served


@pytest.fixture(scope="module")
def scene(catalog: FaultyCatalog, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A loaded table in that catalog; without partitions, so that compaction puts all its batches into one file."""
    settings = {"catalog": {"type": "rest", "uri": catalog.uri}}
    loaded = Scene(tmp_path_factory.mktemp("scene"), settings, {"partitions": {"keys": []}})
    loaded.write_years(YEARS)
    loaded.load()
    loaded.finished()
    return loaded


@pytest.mark.parametrize("fault", FAULTS + (MORE_FAULTS if LONG else []), ids=str)
def test_a_lost_answer_neither_doubles_nor_loses_a_batch(fault: Fault, scene: Scene, catalog: FaultyCatalog) -> None:
    scene.call("rewrite_data_files(table => 'db.readings', options => map('rewrite-all', 'true'))")
    scene.write_years(YEARS[1:], len(scene.facts().ancestry))
    manifests = scene.unused_manifests()
    catalog.arm("readings", fault)
    receipt = scene.lake.apply()
    assert catalog.fired[-1:] == [fault]
    assert receipt.complete
    catalog.settle()
    scene.finished()
    # How a conflict ended is certain in the end, and then nothing stays of what did not land.
    assert scene.unused_manifests() == manifests or fault.status != CONFLICT


@pytest.mark.parametrize("fault", CONFLICTS, ids=str)
def test_a_lost_answer_to_a_compaction_loses_no_row(fault: Fault, scene: Scene, catalog: FaultyCatalog) -> None:
    scene.write_years(YEARS, len(scene.facts().ancestry))
    scene.load()
    assert len(list(scene.native().scan().plan_files())) > 1
    manifests = scene.unused_manifests()
    catalog.arm("readings", fault)
    receipt = scene.lake.compact("readings", rewrite_all=True)
    assert catalog.fired[-1:] == [fault]
    assert [group.outcome for group in receipt.groups] == [GroupOutcome.DONE]
    assert len(list(scene.native().scan().plan_files())) == 1
    scene.finished()
    assert scene.unused_manifests() == manifests


def test_a_lost_answer_about_the_ledger_costs_no_line(scene: Scene, catalog: FaultyCatalog) -> None:
    for fault in (Fault(504), Fault(504, lands_after_seconds=0)):
        scene.write_years(YEARS[1:], len(scene.facts().ancestry))
        catalog.arm("relayout_ledger", fault)
        scene.lake.apply()
        assert catalog.fired[-1:] == [fault]
        scene.load()
        scene.finished()


def test_a_catalog_that_never_answers_is_reported_and_the_next_run_finds_out(
    scene: Scene, catalog: FaultyCatalog
) -> None:
    scene.write_years(YEARS[1:], len(scene.facts().ancestry))
    for _ in range(6):
        catalog.arm("readings", Fault(504))
    receipt = scene.lake.apply()
    assert not receipt.complete
    assert "nobody knows whether the commit" in receipt.tables[0].batches[0].note
    catalog.armed.clear()
    scene.load()
    assert scene.rows() == scene.source_rows()
    assert scene.pending() == {}
