"""A Thrift server and a Connect server that are given the jar and one line of configuration route their clients.

One process is both servers, as they come with PySpark; the clients are the JDBC drivers that come with it, too, in the
JVM that the tests have anyway.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from relayout.jobs.jar import write_jar
from relayout.spark.jars import ensure_jars, jars_for
from relayout.spark.jvm.gateway import fetch_with_spark
from relayout.spark.session import catalog_settings
from tests.spark.routing.conftest import Workshop

pytestmark = pytest.mark.spark

PYSPARK = Path(pyspark.__file__).parent
BY_GEO = "select count(*), sum(value) from lake.db.income where geo = 'g1'"
PATIENCE_SECONDS = 180


@pytest.fixture(scope="module")
def shop(workshop_in: Callable[[Path], Workshop], tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = workshop_in(tmp_path_factory.mktemp("servers"))
    made.sql(
        "create table income using iceberg partitioned by (year) as "
        "select concat('g', id % 5) geo, cast(2020 + id % 4 as int) year, cast(id as int) value from range(40)"
    )
    made.alternate("income", "by_geo", "PARTITIONED BY (geo)")
    return made


@pytest.fixture(scope="module")
def ports(shop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Ports on this machine alone, by kind of server."""
    home = tmp_path_factory.mktemp("server")
    config = shop.lake.config
    written = write_jar(home / "relayout-spark.jar")
    jars = [*ensure_jars(jars_for(config), fetch_with_spark), str(written.file)]
    found = {"thrift": free_port(), "connect": free_port()}
    extensions = written.options[1].removeprefix("--conf ").partition("=")[2]
    settings = catalog_settings(config) | {
        "spark.sql.extensions": extensions,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(found["connect"]),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/metastore;create=true",
    }
    command = [str(PYSPARK / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g"]
    command += ["--jars", ",".join(jars)]
    command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    command += ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal"]
    command += ["--hiveconf", f"hive.server2.thrift.port={found['thrift']}"]
    command += ["--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]
    log = home / "log"
    environment = os.environ | {"SPARK_HOME": str(PYSPARK), "SPARK_LOCAL_IP": "127.0.0.1"}
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=home, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        for port in found.values():
            wait_for(port, server, log)
        yield found
    finally:
        server.terminate()
        server.wait(60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"nobody listens on {port}: {log.read_text(errors='replace')[-3000:]}")


class Client:
    """A JDBC connection through one of the drivers, whose classes stay apart from those of the tests' own Spark."""

    def __init__(self, shop: Workshop, driver: str, url: str, jars: list[Path]) -> None:
        jvm: Any = shop.lake.spark.sparkContext._jvm
        gateway: Any = shop.lake.spark.sparkContext._gateway
        urls = gateway.new_array(jvm.java.net.URL, len(jars))
        for place, jar in enumerate(jars):
            urls[place] = jvm.java.io.File(str(jar)).toURI().toURL()
        loader = jvm.java.net.URLClassLoader(urls, jvm.java.lang.ClassLoader.getPlatformClassLoader())
        thread = jvm.java.lang.Thread.currentThread()
        own = thread.getContextClassLoader()
        thread.setContextClassLoader(loader)
        try:
            made = loader.loadClass(driver).getConstructor(gateway.new_array(jvm.java.lang.Class, 0))
            opened = made.newInstance(gateway.new_array(jvm.java.lang.Object, 0))
            self._connection = opened.connect(url, jvm.java.util.Properties())
        finally:
            thread.setContextClassLoader(own)

    def rows(self, text: str) -> list[tuple[str, ...]]:
        statement = self._connection.createStatement()
        try:
            found = statement.executeQuery(text)
            columns = range(1, found.getMetaData().getColumnCount() + 1)
            rows = []
            while found.next():
                rows.append(tuple(str(found.getString(column)) for column in columns))
            return rows
        finally:
            statement.close()


@pytest.fixture(scope="module")
def clients(shop: Workshop, ports: dict[str, int]) -> dict[str, Client]:
    jars = sorted((PYSPARK / "jars").glob("*.jar"))
    remote = [*sorted((PYSPARK / "jars" / "connect-repl").glob("*.jar")), *jars]
    return {
        "thrift": Client(
            shop, "org.apache.hive.jdbc.HiveDriver", f"jdbc:hive2://127.0.0.1:{ports['thrift']}/default", jars
        ),
        "connect": Client(
            shop,
            "org.apache.spark.sql.connect.client.jdbc.SparkConnectDriver",
            f"jdbc:sc://127.0.0.1:{ports['connect']}",
            remote,
        ),
    }


@pytest.mark.parametrize("kind", ["thrift", "connect"])
def test_clients_of_servers_are_routed(shop: Workshop, clients: dict[str, Client], kind: str) -> None:
    client = clients[kind]
    served = shop.layouts(BY_GEO)["by_geo"].layout
    assert client.rows(BY_GEO) == [("8", "148")]
    assert f"BatchScan lake.db.{served}" in client.rows(f"explain {BY_GEO}")[0][0]
    client.rows("set spark.relayout.routing=off")
    assert "BatchScan lake.db.income" in client.rows(f"explain {BY_GEO}")[0][0]
    client.rows("set spark.relayout.routing=require")
    with pytest.raises(Exception, match="RELAYOUT_NOT_ROUTED"):
        client.rows("select * from lake.db.income where year = 2020")
