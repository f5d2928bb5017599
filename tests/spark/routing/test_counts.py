"""How often alternates were considered, matched and used outlives the session that counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from relayout.read.catalog import CatalogReader
from relayout.read.routing_counts import counts_by_alternate
from tests.spark.routing.conftest import Workshop

pytestmark = pytest.mark.spark


def test_queries_are_counted_and_explanations_are_not(workshop_in: Callable[[Path], Workshop], tmp_path: Path) -> None:
    shop = workshop_in(tmp_path)
    shop.lake.keep_routing_counts()
    shop.sql("create table t using iceberg partitioned by (a) as select id % 3 a, id % 4 b, id c from range(24)")
    by_b = shop.alternate("t", "by_b", "PARTITIONED BY (b)")
    shop.explained("select * from t where b = 1")
    shop.sql("select * from t where b = 1")
    shop.sql("select * from t where a = 1")
    shop.sql("delete from t where a = 2")
    shop.sql("select * from t where b = 1")
    shop.lake.status()
    shop.fill("t", by_b)
    shop.sql("select * from t where b = 2")
    shop.lake.sql("select * from t where b = 1", route=False).collect()
    shop.lake.keep_routing_counts()
    found = counts_by_alternate(shop.lake.config, CatalogReader(shop.lake.config))
    counts = found[by_b]
    assert (counts.considered, counts.matched, counts.used) == (4, 3, 2)
    assert counts.base_uuid == str(shop.lake.table("t").metadata.table_uuid)
    assert counts.last_used_ms > 0
    source = shop.lake.spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().metricsSystem()
    [metrics] = [source.getSourcesByName("relayout.routing").apply(0).metricRegistry()]
    assert metrics.counter(f"{by_b}.used").getCount() == 2
    assert metrics.counter(f"{by_b}.considered").getCount() == 4


def test_the_table_of_counts_is_not_one_of_the_users(workshop_in: Callable[[Path], Workshop], tmp_path: Path) -> None:
    shop = workshop_in(tmp_path)
    shop.sql("create table t using iceberg as select 1 a")
    shop.alternate("t", "by_a", "PARTITIONED BY (a)")
    shop.sql("select * from t where a = 1")
    shop.lake.keep_routing_counts()
    assert [row[1] for row in shop.sql("show tables") if row[1] == "relayout_routing"]
    assert [table.name for table in shop.lake.status().tables if not table.name.startswith("_mv_")] == ["t"]
    assert shop.lake.plan().drops == ()
