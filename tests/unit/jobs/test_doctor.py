"""What the doctor says of a machine or a lake that is not as it should be, and how to put it right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema

from relayout.config import Config, Spark, from_mapping
from relayout.errors import EnvironmentProblem
from relayout.jobs.checks.memory import Machine, memory_finding
from relayout.jobs.checks.store import PROBE, require_whole
from relayout.jobs.doctor import examine, examine_file
from relayout.report.doctor_text import doctor_text
from relayout.upkeep.findings import Diagnosis, Finding, State


@pytest.fixture(autouse=True)
def no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Without its jars Spark is not even tried, and so these tests start no engine."""
    folder = tmp_path / "no jars"
    folder.mkdir()
    monkeypatch.setenv("RELAYOUT_JARS", str(folder))
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    """`lake(catalog={…})`: a configuration with one table whose source is there."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')

    def configured(**settings: Any) -> Config:
        table = {"source": str(tmp_path / "in" / "*.json")}
        return from_mapping({"warehouse": str(tmp_path / "lake"), "namespace": "db", "tables": {"t": table}} | settings)

    return configured


def found(diagnosis: Diagnosis, check: str) -> list[Finding]:
    return [finding for finding in diagnosis.findings if finding.check == check]


def only(diagnosis: Diagnosis, check: str) -> Finding:
    findings = found(diagnosis, check)
    assert len(findings) == 1, findings
    return findings[0]


def test_missing_jars_are_named_and_spark_is_not_tried(lake: Any, no_jars: Path) -> None:
    diagnosis = examine(lake())
    jars = only(diagnosis, "jars")
    assert jars.state is State.PROBLEM
    assert "iceberg-spark-runtime-4.1_2.13-1.12.0.jar, sqlite-jdbc-3.50.3.0.jar" in jars.what
    assert f"RELAYOUT_JARS={no_jars}" in jars.what
    assert jars.next == "put these files there, or unset RELAYOUT_JARS to have them fetched"
    assert only(diagnosis, "Spark").what == "not tried, because of what was found for jars"
    assert not diagnosis.healthy
    others = {
        finding.state for finding in diagnosis.findings if finding.check not in ("jars", "Spark", "memory", "disk")
    }
    assert others == {State.OK}


def test_a_jar_that_is_not_the_pinned_one_is_refused(lake: Any, no_jars: Path) -> None:
    for name in ("iceberg-spark-runtime-4.1_2.13-1.12.0.jar", "sqlite-jdbc-3.50.3.0.jar"):
        (no_jars / name).write_bytes(b"something else")
    jars = only(examine(lake()), "jars")
    assert jars.what.startswith("iceberg-spark-runtime-4.1_2.13-1.12.0.jar is not the expected file: SHA-256 ")
    assert jars.next == "delete the file and run again; if it comes back the same, do not use it"


def test_a_java_home_without_a_java_that_runs_is_passed_over_or_a_problem(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "java" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    java = only(examine(lake()), "Java")
    assert java.state is not State.OK
    assert "JAVA_HOME does not run" in java.what
    assert "JAVA_HOME" in java.next


def test_a_catalog_that_does_not_answer_is_told_without_its_password(lake: Any) -> None:
    catalog = {"uri": "jdbc:postgresql://127.0.0.1:1/lake?user=u&password=hushhush"}
    diagnosis = examine(lake(catalog=catalog))
    told = only(diagnosis, "catalog")
    assert told.state is State.PROBLEM
    assert "Connection refused" in told.what
    assert told.what.endswith("(postgresql://127.0.0.1:1/lake)")
    assert told.next == "check catalog.uri and its login, and that the server runs and can be reached from here"
    assert "hushhush" not in doctor_text(diagnosis) + str(diagnosis.to_json())


def test_a_store_that_nobody_serves_is_a_problem_of_the_storage(lake: Any, tmp_path: Path) -> None:
    properties = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key-id": "k", "s3.secret-access-key": "hushhush"}
    catalog = {"uri": f"jdbc:sqlite:{tmp_path / 'c.db'}", "properties": properties | {"client.region": "eu-west-1"}}
    storage = only(examine(lake(warehouse="s3://bucket/house", catalog=catalog)), "storage")
    assert storage.state is State.PROBLEM
    assert storage.what.endswith("(s3://bucket/house)")
    fix = "check that the bucket exists, and s3.endpoint, client.region and the keys in catalog.properties"
    assert storage.next == fix


def test_a_source_that_lists_nothing_is_a_problem(lake: Any, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.json").unlink()
    sources = only(examine(lake()), "sources")
    assert sources.what == f"t: {tmp_path / 'in' / '*.json'} means no file at all"
    assert sources.next == "is the disk mounted, is the pattern right?"


def test_a_folder_catalog_is_warned_about(lake: Any) -> None:
    answer, warning = found(examine(lake(catalog={"type": "hadoop"})), "catalog")
    assert answer.state is State.OK
    assert warning.what.startswith("a Hadoop catalog cannot tell two writers apart")


def made_catalog(config: Config, name: str, properties: dict[str, str]) -> None:
    """A catalog with a table `db.t`, as another engine leaves it."""
    Path(config.warehouse).mkdir()
    catalog = SqlCatalog(name, uri=f"sqlite:///{config.warehouse}/catalog.db", warehouse=config.warehouse)
    catalog.create_namespace("db")
    catalog.create_table("db.t", Schema(), properties=properties)


def test_tables_under_another_catalog_name_are_pointed_out(lake: Any) -> None:
    config = lake()
    made_catalog(config, "prod", {})
    told = only(examine(config), "catalog")
    assert told.what.endswith("holds 0 tables in db, but its database holds tables of prod")
    assert told.next == "every engine must use one name: is `catalog.name` right?"


def test_tables_that_must_not_be_cleaned_up_are_named(lake: Any) -> None:
    config = lake()
    made_catalog(config, "lake", {"gc.enabled": "false"})
    diagnosis = examine(config)
    assert only(diagnosis, "catalog").state is State.OK
    assert only(diagnosis, "upkeep").what.startswith("gc.enabled is false for t: ")


@pytest.mark.parametrize(
    "framed",
    [
        b"10000;chunk-signature=" + b"a" * 64 + b"\r\n" + PROBE + b"\r\n0;chunk-signature=" + b"b" * 64 + b"\r\n\r\n",
        b"10000\r\n" + PROBE + b"\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n",
    ],
)
def test_a_store_that_keeps_the_framing_of_uploads_gets_the_setting_that_helps(framed: bytes) -> None:
    require_whole(PROBE)
    with pytest.raises(EnvironmentProblem, match="framing of chunked uploads") as told:
        require_whole(framed)
    assert "s3.chunked-encoding-enabled" in told.value.next
    with pytest.raises(EnvironmentProblem, match="65,536 bytes were written, and 65,535 other ones came back") as told:
        require_whole(PROBE[:-1])
    assert "s3.chunked" not in told.value.next


def test_too_little_memory_comes_with_settings_that_fit() -> None:
    spark = Spark("local[4]", "4g", "1g")
    assert memory_finding(spark, Machine(16 << 30, 4), declared=True).state is State.OK
    tight = memory_finding(spark, Machine(4 << 30, 4, limited=True), declared=True)
    assert tight.state is State.WARNING
    assert tight.what == "driver_memory 4g + 4 x task_memory 1g = 8.6 GB; this container may use 4.3 GB"
    assert "`driver_memory: " in tight.next
    assert memory_finding(spark, Machine(300 << 20, 1), declared=True).next == "give it at least 1 GB"


def test_a_configuration_with_faults_is_examined_with_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "relayout.yaml").write_text("tables: {t: {sauce: x}}\n")
    diagnosis = examine_file(str(tmp_path / "relayout.yaml"))
    told = only(diagnosis, "configuration")
    assert told.state is State.PROBLEM
    assert "relayout.yaml:1: tables.t.sauce" in told.what
    assert found(diagnosis, "memory")[0].what.startswith("with the defaults: ")
    assert not found(diagnosis, "catalog")
