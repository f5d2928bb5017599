"""An Iceberg REST catalog: the reference server of the Iceberg project, on SQLite.

Its own `main` binds every interface, so the same servlet is put behind a Jetty that binds the loopback one. Maven
brings the jars, because some of them are only told apart by a classifier, which Spark's resolver does not know.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosscheck.services.packages import program
from crosscheck.services.processes import LOOPBACK, NotObtainable, stopped

POM = Path(__file__).with_name("rest_jars.xml")
FETCH_SECONDS = 900


@contextmanager
def rest_catalog(folder: Path, jars: Path, warehouse: str, properties: Mapping[str, str]) -> Iterator[str]:
    """The address of a server whose tables lie in `warehouse`; `properties` are those of its FileIO."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    class_path = os.pathsep.join(sorted(map(str, _jars(jars).glob("*.jar"))))
    with (folder / "rest.log").open("ab") as log:
        port, token, process = launch_gateway(
            classpath=class_path,
            jarpath=_py4j_jar(),
            java_path=_java(),
            javaopts=["-Xmx256m"],
            die_on_exit=True,
            enable_auth=True,
            redirect_stdout=log,
            redirect_stderr=log,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        try:
            yield _served(gateway.jvm, folder / "rest.db", {"warehouse": warehouse, **properties})
        finally:
            gateway.shutdown()
            stopped(process)


def _served(jvm: Any, database: Path, properties: Mapping[str, str]) -> str:
    iceberg, jetty = jvm.org.apache.iceberg, jvm.org.eclipse.jetty
    catalog = iceberg.jdbc.JdbcCatalog()
    catalog.setConf(jvm.org.apache.hadoop.conf.Configuration())
    told = {"uri": f"jdbc:sqlite:{database}", "jdbc.schema-version": "V1", **properties}
    catalog.initialize("behind_rest", told)
    context = jetty.ee10.servlet.ServletContextHandler()
    servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(catalog))
    context.addServlet(jetty.ee10.servlet.ServletHolder(servlet), "/*")
    server = jetty.server.Server(jvm.java.net.InetSocketAddress(LOOPBACK, 0))
    server.setHandler(context)
    server.start()
    return f"http://{LOOPBACK}:{server.getURI().getPort()}"


def _jars(folder: Path) -> Path:
    done = folder / POM.name
    if done.exists() and done.read_bytes() == POM.read_bytes():
        return folder
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
    command = [program("mvn", "maven"), "--quiet", "--batch-mode", "--file", str(POM), "dependency:copy-dependencies"]
    command.append(f"-DoutputDirectory={scratch}")
    answer = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    if answer.returncode != 0:
        first = next((line for line in answer.stdout.splitlines() if "ERROR" in line), "no message")
        raise NotObtainable(f"the REST server's jars could not be fetched: {first}")
    shutil.copy(POM, scratch)
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)
    return folder


def _java() -> str:
    from relayout.spark.java import find_java

    return str(Path(find_java().home) / "bin" / "java")


def _py4j_jar() -> str:
    import pyspark

    return glob.glob(str(Path(pyspark.__file__).parent / "jars" / "py4j-*.jar"))[0]
