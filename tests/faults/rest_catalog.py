"""An Iceberg REST catalog on this machine whose answers to commits get lost on request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest

NEVER = float("inf")


@dataclass(frozen=True)
class Fault:
    """What becomes of one commit: when it lands, and the status that is told instead; 0 cuts the connection."""

    status: int
    lands_after_seconds: float = NEVER

    def __str__(self) -> str:
        landing = {0.0: "landed", NEVER: "not-landed"}.get(self.lands_after_seconds, "landing-late")
        return f"{self.status or 'cut'}-{landing}"


@dataclass
class FaultyCatalog:
    """`arm` a fault and the next snapshot of that table meets it; `fired` are those that did."""

    uri: str
    store: SqlCatalog
    armed: list[tuple[str, Fault]] = field(default_factory=list)
    fired: list[Fault] = field(default_factory=list)
    late: list[threading.Thread] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def arm(self, table: str, fault: Fault) -> None:
        self.armed.append((table, fault))

    def settle(self) -> None:
        """Wait for commits that land late."""
        while self.late:
            self.late.pop().join()

    def fault_for(self, table: str, updates: list[dict[str, Any]]) -> Fault | None:
        adds = any(update["action"] == "add-snapshot" for update in updates)
        for number, (name, fault) in enumerate(self.armed):
            if adds and name == table:
                del self.armed[number]
                self.fired.append(fault)
                return fault
        return None

    def commit(self, body: dict[str, Any]) -> None:
        with self.lock:
            request = CommitTableRequest.model_validate(body)
            table = self.store.load_table((*request.identifier.namespace.root, request.identifier.name))
            self.store.commit_table(table, request.requirements, request.updates)

    def commit_later(self, body: dict[str, Any], seconds: float) -> None:
        def land() -> None:
            time.sleep(seconds)
            try:
                self.commit(body)
            except CommitFailedException:
                # Somebody else's commit came first, which is how a catalog ends such a race.
                return

        thread = threading.Thread(target=land)
        thread.start()
        self.late.append(thread)


@contextmanager
def faulty_catalog(warehouse: Path) -> Iterator[FaultyCatalog]:
    """Serve a catalog on the loopback interface for as long as the block runs."""
    warehouse.mkdir(parents=True)
    database = f"sqlite:///{warehouse}/catalog.db?check_same_thread=false"
    catalog = FaultyCatalog("", SqlCatalog("rest", uri=database, warehouse=str(warehouse)))
    handler = type("Handler", (_Handler,), {"catalog": catalog})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    catalog.uri = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield catalog
    catalog.settle()
    server.shutdown()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """The few routes that Iceberg's clients for Java and Python need here."""

    protocol_version = "HTTP/1.1"
    catalog: FaultyCatalog

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        with self.catalog.lock:
            self._read()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or "{}")
        match self._route():
            case ["namespaces"]:
                with self.catalog.lock:
                    self.catalog.store.create_namespace_if_not_exists(tuple(body["namespace"]))
                self._answer(200, {"namespace": body["namespace"], "properties": {}})
            case ["namespaces", namespace, "tables"]:
                self._create(namespace, body)
            case ["namespaces", namespace, "tables", table]:
                self._commit(namespace, table, body)
            case _:
                self._answer(204, None)

    def _route(self) -> list[str]:
        return [part for part in self.path.split("?")[0].split("/") if part][1:]

    def _read(self) -> None:
        store = self.catalog.store
        match self._route():
            case ["config"]:
                self._answer(200, {"defaults": {}, "overrides": {}})
            case ["namespaces"]:
                self._answer(200, {"namespaces": [list(name) for name in store.list_namespaces()]})
            case ["namespaces", namespace]:
                if store.namespace_exists(namespace):
                    self._answer(200, {"namespace": [namespace], "properties": {}})
                else:
                    self._missing("NoSuchNamespaceException")
            case ["namespaces", namespace, "tables"]:
                found = store.list_tables(namespace) if store.namespace_exists(namespace) else []
                names = [{"namespace": [namespace], "name": name[-1]} for name in found]
                self._answer(200, {"identifiers": names})
            case ["namespaces", namespace, "tables", table]:
                try:
                    self._table(namespace, table)
                except NoSuchTableError:
                    self._missing("NoSuchTableException")
            case _:
                self._missing("NotFoundException")

    def _create(self, namespace: str, body: dict[str, Any]) -> None:
        spec = body.get("partition-spec")
        with self.catalog.lock:
            self.catalog.store.create_table(
                (namespace, body["name"]),
                Schema.model_validate(body["schema"]),
                partition_spec=PartitionSpec.model_validate(spec) if spec else UNPARTITIONED_PARTITION_SPEC,
                properties=body.get("properties", {}),
            )
            self._table(namespace, body["name"])

    def _commit(self, namespace: str, table: str, body: dict[str, Any]) -> None:
        body["identifier"] = {"namespace": [namespace], "name": table}
        with self.catalog.lock:
            fault = self.catalog.fault_for(table, body["updates"])
        if fault is None or fault.lands_after_seconds == 0:
            try:
                self.catalog.commit(body)
            except CommitFailedException as refused:
                self._error(409, "CommitFailedException", str(refused))
                return
        elif fault.lands_after_seconds != NEVER:
            self.catalog.commit_later(body, fault.lands_after_seconds)
        if fault is None:
            with self.catalog.lock:
                self._table(namespace, table)
        elif fault.status:
            self._error(fault.status, "CommitFailedException" if fault.status == 409 else "Injected", "injected")
        else:
            self.close_connection = True
            self.connection.close()

    def _table(self, namespace: str, name: str) -> None:
        table = self.catalog.store.load_table((namespace, name))
        metadata = json.loads(table.metadata.model_dump_json())
        self._answer(200, {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}})

    def _missing(self, kind: str) -> None:
        self._error(404, kind, self.path)

    def _error(self, status: int, kind: str, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": kind, "code": status}})

    def _answer(self, status: int, document: dict[str, Any] | None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
