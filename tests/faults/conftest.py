"""One Spark in this process, another one in a warm second process; everything here does harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.processes import SecondProcess


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.faults)
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def first(warm_spark: dict[str, str]) -> dict[str, str]:
    """This process, which ends what the others left undone."""
    return warm_spark


@pytest.fixture(scope="session")
def second(first: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondProcess]:
    process = SecondProcess(tmp_path_factory.mktemp("second"), first)
    yield process
    process.stop()
