"""What a good configuration becomes."""

import pickle
from pathlib import Path

import pytest

from relayout.config import Cluster, Config, PartitionKey, Policy, from_mapping, load
from relayout.errors import ConfigError, MissingError

FULL = """
warehouse: ./lake
namespace: econ
catalog: {name: lake, type: jdbc, properties: {cache-enabled: false}}
spark: {master: "local[2]", driver_memory: 2g, task_memory: 512m, conf: {spark.sql.shuffle.partitions: 8}}
tables:
  regional_income:
    source: "downloads/regional_income/*_{year}_*.json"
    schema: {geo_fips: string}
    columns: {value_usd: "cast(value as decimal(18,2))", share: 1.50, day: 2020-01-31, kept: true, tag: "'x'"}
    partitions: {style: hive, keys: [{name: year, type: INTEGER}, geo_fips]}
    sort: [geo_fips, year DESC, line asc]
    batch_partition_columns: [year]
    alternate_partitions:
      - name: by_fips
        partition: {keys: [{name: geo_fips, type: VARCHAR, transform: bucket(16)}]}
        cluster: {curve: hilbert, by: [geo_fips, year]}
    policy: {compact_below_mb: 128, expire_days: 7, max_bytes_per_run: 50gb}
  orders:
    partitions: {keys: [{name: created_at, transform: days}]}
  bare:
streams:
  orders:
    from: {files: "changes/*.json"}
    key: id
    commit_interval: 5m
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "relayout.yaml").write_text(FULL)
    return load(tmp_path / "relayout.yaml")


def test_relative_paths_start_at_the_folder_of_the_file(config: Config, tmp_path: Path) -> None:
    assert config.base_dir == str(tmp_path)
    assert config.warehouse == str(tmp_path / "lake")
    assert config.catalog.uri == f"jdbc:sqlite:{tmp_path}/lake/catalog.db"


def test_a_folder_stands_for_the_file_in_it(config: Config, tmp_path: Path) -> None:
    assert load(tmp_path) == config


def test_every_key_of_a_table_reaches_its_value(config: Config) -> None:
    table = config.tables["regional_income"]
    assert table.source == ("downloads/regional_income/*_{year}_*.json",)
    assert table.partitions == (PartitionKey("year", "INTEGER"), PartitionKey("geo_fips"))
    assert table.sort == ("geo_fips", "year desc", "line")
    assert table.policy == Policy(compact_below_mb=128, expire_days=7.0, max_bytes_per_run=50 * 2**30)
    assert table.line == 7


def test_constants_become_literals_and_texts_stay_expressions(config: Config) -> None:
    assert config.tables["regional_income"].columns == {
        "value_usd": "cast(value as decimal(18,2))",
        "share": "1.50",
        "day": "'2020-01-31'",
        "kept": "true",
        "tag": "'x'",
    }


def test_batches_default_to_identity_keys_and_an_alternate_follows_its_table(config: Config) -> None:
    (alternate,) = config.tables["regional_income"].alternates
    assert config.tables["regional_income"].incremental_keys == ("year",)
    assert alternate.batch_partition_columns == alternate.incremental_keys == ("year",)
    assert alternate.partitions == (PartitionKey("geo_fips", "VARCHAR", "bucket[16]"),)
    assert alternate.cluster == Cluster("hilbert", ("geo_fips", "year"))
    assert config.tables["orders"].batch_partition_columns == ()
    both = from_mapping({"tables": {"t": {"partitions": {"keys": ["year", "geo"]}}}})
    assert both.tables["t"].batch_partition_columns == ("year", "geo")


def test_a_table_may_be_declared_by_its_name_alone(config: Config) -> None:
    bare = config.tables["bare"]
    assert (bare.source, bare.partitions, bare.batch_partition_columns) == ((), (), ())


def test_a_stream_gets_numbers_for_durations(config: Config) -> None:
    stream = config.streams["orders"]
    assert (stream.table, stream.key, stream.files) == ("orders", ("id",), ("changes/*.json",))
    assert (stream.commit_interval_seconds, stream.tombstones_days) == (300.0, 7.0)
    assert (stream.dead_letters, stream.kafka) == ("orders_dead", {})


def test_memory_is_known_in_bytes_and_settings_are_texts(config: Config) -> None:
    assert (config.spark.driver_memory_bytes, config.spark.task_memory_bytes) == (2 * 2**30, 512 * 2**20)
    assert config.spark.conf == {"spark.sql.shuffle.partitions": "8"}
    assert config.catalog.properties == {"cache-enabled": "false"}


def test_a_configuration_can_be_sent_to_another_process(config: Config) -> None:
    assert pickle.loads(pickle.dumps(config)) == config


def test_secrets_stay_out_of_the_representation() -> None:
    config = from_mapping({"tables": {}, "catalog": {"properties": {"jdbc.password": "hush"}}})
    assert "hush" not in repr(config)


def test_a_mapping_says_the_same_as_a_file(tmp_path: Path) -> None:
    config = from_mapping({"warehouse": tmp_path / "w", "tables": {"t": {"source": ("a.csv", "b.csv")}}}, tmp_path)
    assert config.tables["t"].source == ("a.csv", "b.csv")
    assert config.warehouse == str(tmp_path / "w")


def test_a_warehouse_on_s3_keeps_its_address() -> None:
    catalog = {"uri": "jdbc:postgresql://127.0.0.1/lake"}
    assert from_mapping({"warehouse": "s3://bucket/econ/", "catalog": catalog}).warehouse == "s3://bucket/econ"


@pytest.mark.parametrize(
    ("written", "normal"),
    [("bucket(16)", "bucket[16]"), ("Truncate[4]", "truncate[4]"), ("years", "year"), ("HOURS", "hour")],
)
def test_transforms_are_brought_to_icebergs_spelling(written: str, normal: str) -> None:
    key = {"name": "c", "transform": written}
    assert (
        from_mapping({"tables": {"t": {"partitions": {"keys": [key]}}}}).tables["t"].partitions[0].transform == normal
    )


def test_a_missing_file_leads_to_init(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="relayout init") as caught:
        load(tmp_path / "nowhere.yaml")
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.where == str(tmp_path / "nowhere.yaml")


def test_an_unreadable_file_is_a_located_problem(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"tables:\n  caf\xe9:\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml:2: the file: is not UTF-8 text"):
        load(tmp_path / "latin.yaml")
    (tmp_path / "huge.yaml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(ConfigError, match="larger than"):
        load(tmp_path / "huge.yaml")
