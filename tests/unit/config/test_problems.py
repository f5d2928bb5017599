"""What is said about a configuration that is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relayout.config
from relayout.config import from_mapping, json_schema, load
from relayout.config.yaml_text import read_yaml
from relayout.errors import ConfigError, ConfigProblem

GOLDEN = Path(__file__).parents[2] / "golden"


def problems(mapping: dict[str, Any]) -> dict[str, ConfigProblem]:
    with pytest.raises(ConfigError) as caught:
        from_mapping(mapping)
    return {problem.key: problem for problem in caught.value.problems}


def table(**keys: Any) -> dict[str, Any]:
    return {"tables": {"t": keys}}


def test_ten_errors_are_shown_at_once_with_file_line_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(ConfigError) as caught:
        load("config_ten_errors.yaml")
    assert len(caught.value.problems) == 10
    assert f"{caught.value}\n" == (GOLDEN / "config_ten_errors.txt").read_text()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("partition_alternates", "`alternate_partitions`"),
        ("alternates", "`alternate_partitions`"),
        ("pattern", "`source`"),
        ("files", "`source`"),
        ("partition_by", "`partitions: {keys: [...]}`"),
        ("batch_columns", "`batch_partition_columns`"),
        ("incremental_columns", "`incremental_keys`"),
        ("partition", "`partitions`"),
        ("sorce", "`source`"),
        ("on-removed", "`on_removed`"),
    ],
)
def test_an_unknown_key_gets_the_one_that_was_meant(written: str, meant: str) -> None:
    problem = problems(table(**{written: "x"}))[f"tables.t.{written}"]
    assert problem.what == "unknown key"
    assert meant in problem.next


def test_an_alternate_is_told_that_it_has_no_files_of_its_own() -> None:
    found = problems(table(alternate_partitions=[{"name": "a", "pattern": "x/*.parquet"}]))
    assert "the catalog knows" in found["tables.t.alternate_partitions[0].pattern"].next


@pytest.mark.parametrize(
    ("mapping", "key", "what"),
    [
        ({}, "the file", "declares nothing"),
        (table(source=[]), "tables.t.source", "is an empty list"),
        (table(source="http://x/y.json"), "tables.t.source[0]", "not a local path"),
        (table(source="a_{year.json"), "tables.t.source[0]", "brace"),
        (table(partitions=["year"]), "tables.t.partitions", "should hold `keys`"),
        (table(partitions={"keys": ["year", "Year"]}), "tables.t.partitions.keys[1]", "already a key"),
        (table(batch_partition_columns=[""]), "tables.t.batch_partition_columns[0]", "empty column name"),
        (table(schema={"a": "decimal(18,2"}), "tables.t.schema.a", "lacks the closing bracket"),
        (table(columns={"a": None}), "tables.t.columns.a", "has no value"),
        (table(alternate_partitions=[{"name": "a"}, {"name": "a"}]), "tables.t.alternate_partitions[1].name", "twice"),
        (table(policy={"max_bytes_per_run": "many"}), "tables.t.policy.max_bytes_per_run", "not a size"),
        ({"tables": {"relayout_ledger": {}}}, "tables.relayout_ledger", "own table"),
        ({"tables": {"../x": {}}}, "tables['../x']", "would become a path"),
        ({"tables": {"a\nb": {}}}, "tables['a\\nb']", "control characters"),
        ({"tables": {}, "defaults": {"format_version": 1}}, "defaults.format_version", "not known"),
        ({"warehouse": "s3://b/x"}, "catalog.uri", "needed for a warehouse on S3"),
        ({"warehouse": "s3://b/x", "catalog": {"type": "hadoop"}}, "catalog.type", "needs a warehouse on a disk"),
        ({"tables": {}, "catalog": {"type": "rest"}}, "catalog.uri", "needed for a rest catalog"),
        ({"tables": {}, "catalog": {"uri": "jdbc:h2:mem:x;INIT=RUNSCRIPT"}}, "catalog.uri", "not a JDBC address"),
        ({"tables": {}, "streams": {"s": {"key": "id", "from": {"files": "x"}}}}, "streams.s.table", "not declared"),
        ({"tables": {"s": {}}, "streams": {"s": {"from": {"files": "x"}}}}, "streams.s.key", "is needed"),
        ({"tables": {"s": {}}, "streams": {"s": {"key": "id", "from": {}}}}, "streams.s.from", "neither"),
        ({"tables": {"s": {}}, "streams": {"s": {"key": "id"}}}, "streams.s.from", "is needed"),
    ],
)
def test_each_mistake_is_named_where_it_is(mapping: dict[str, Any], key: str, what: str) -> None:
    found = problems(mapping)
    assert what in found[key].what
    assert found[key].next


@pytest.mark.parametrize(
    "setting",
    [
        "spark.jars",
        "spark.jars.packages",
        "spark.driver.extraJavaOptions",
        "spark.executor.extraClassPath",
        "spark.plugins",
        "spark.submit.pyFiles",
        "spark.sql.extensions",
        "spark.sql.queryExecutionListeners",
        "spark.executorEnv.PYTHONPATH",
        "spark.python.daemon.module",
        "spark.hadoop.fs.s3a.impl",
    ],
)
def test_no_setting_can_load_code(setting: str) -> None:
    found = problems({"tables": {}, "spark": {"conf": {setting: "x"}}})
    assert "relayout.open" in found[f"spark.conf['{setting}']"].next


def test_settings_that_tune_pass() -> None:
    conf = {"spark.ui.enabled": False, "spark.executor.memory": "2g", "spark.hadoop.fs.s3a.endpoint": "http://h"}
    assert from_mapping({"tables": {}, "spark": {"conf": conf}}).spark.conf["spark.ui.enabled"] == "false"


@pytest.mark.parametrize("key", ["io-impl", "py-catalog-impl", "s3.client-factory-impl"])
def test_no_catalog_property_can_name_a_class(key: str) -> None:
    (problem,) = problems({"tables": {}, "catalog": {"properties": {key: "x.Y"}}}).values()
    assert key in problem.key
    assert problem.what == "names code to load"


def test_secrets_are_not_repeated_in_problems() -> None:
    found = problems({"tables": {}, "catalog": {"uri": "postgresql://u:hush@h/d", "properties": {"io-impl": "hush"}}})
    assert not any("hush" in str(problem) for problem in found.values())


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: &x 1\nb: *x\n", 2, "an alias"),
        ("a: &x 1\n", 1, "an anchor"),
        ("tables:\n  <<: {a: 1}\n", 2, "a merge key"),
        ("tables:\n  t: !!python/object/apply:os.system [x]\n", 2, "a tag"),
        ("tables:\n  t: {}\n  t: {}\n", 3, "said before, on line 2"),
        ("--- {}\n--- {}\n", 2, "a second document"),
        ("tables:\n\tt: {}\n", 2, "not YAML"),
        ("fips: 01001\n", 1, "would lose its zeros"),
        ("[" * 100_000, 1, "levels deep"),
        ("- " * 100_000, 1, "levels deep"),
    ],
)
def test_only_the_data_part_of_yaml_is_read(text: str, line: int, what: str) -> None:
    found = read_yaml(text, "f.yaml").problems
    assert any(problem.line == line and what in problem.what for problem in found)


def test_plain_words_stay_texts() -> None:
    data = read_yaml("a: no\nb: 1e3\nc: 0x10\nd: '1'\ne: ~\nf: 1:30\n", "f").data
    assert data == {"a": "no", "b": 1000.0, "c": 16, "d": "1", "e": None, "f": "1:30"}


KNOWN = [
    "tables",
    "streams",
    "warehouse",
    "catalog",
    "t",
    "source",
    "partitions",
    "keys",
    "name",
    "from",
    "files",
    "kafka",
]
KEYS = st.sampled_from(KNOWN)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_any_mapping_is_accepted_or_refused_with_located_problems(mapping: dict[str, Any]) -> None:
    found: tuple[ConfigProblem, ...] = ()
    try:
        from_mapping(mapping)
    except ConfigError as error:
        found = error.problems or (ConfigProblem("", 0, "", ""),)
    assert all(problem.key and problem.what for problem in found)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@,? \n\t01~", max_size=60))
def test_any_text_is_read_or_refused_without_a_traceback(text: str) -> None:
    document = read_yaml(text, "f.yaml")
    assert all(problem.file == "f.yaml" for problem in document.problems)


def test_the_shipped_json_schema_is_current() -> None:
    shipped = Path(relayout.config.__file__).with_name("relayout.schema.json")
    assert json.loads(shipped.read_text()) == json_schema()
