"""What all tests share.

How much the property tests try: the same few examples on every machine, or many fresh ones on request. And the one
Spark of the test process, for those who ask for it.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci", derandomize=True, max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("RELAYOUT_HYPOTHESIS", "ci"))

SPARK = {"master": "local[2]", "driver_memory": "1g", "task_memory": "512m"}


@pytest.fixture(scope="session")
def warm_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The `spark` section that all lakes of the test process have, its JVM started.

    What a lake remembers of source files stays with the tests; the jars are the machine's, fetched if need be.
    """
    import relayout
    from relayout.spark.jars import cache_folder

    given = {name: os.environ.get(name) for name in ("RELAYOUT_CACHE", "RELAYOUT_JARS")}
    started = relayout.open({"warehouse": str(tmp_path_factory.mktemp("first")), "spark": SPARK, "tables": {}}).spark
    os.environ.setdefault("RELAYOUT_JARS", str(cache_folder() / "jars"))
    os.environ["RELAYOUT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield SPARK
    started.stop()
    for name, value in given.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
