"""S3 as a place of files: listing, fetching, uploading through PyArrow's own client, no JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.errors import EnvironmentProblem, MissingError, RelayoutError, Retry, SourceError
from relayout.table.sources import SourceFile

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

SECOND_NS = 1_000_000_000

_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A client for one endpoint; it holds a connection pool, so make one per run."""

    client: S3FileSystem

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ObjectStore:
        """From a catalog's `s3.*` properties; what they leave out comes from the ambient AWS settings."""
        from pyarrow.fs import S3FileSystem

        return cls(S3FileSystem(**client_options(properties)))

    def list(self, root: str) -> Iterator[SourceFile]:
        """Every object below `s3://bucket/folder`; nothing where the folder does not exist."""
        from pyarrow.fs import FileSelector, FileType

        try:
            found = self.client.get_file_info(FileSelector(_key(root), allow_not_found=True, recursive=True))
        except OSError as problem:
            raise _told(problem, root) from problem
        for item in found:
            if item.type == FileType.File:
                # PyArrow gives no etag: size and time of change are what a listing can tell.
                yield SourceFile(f"s3://{item.path}", item.size, item.mtime_ns)

    def fetch(self, path: str, to_local: str) -> None:
        """Copy an object to a local file, which appears under its name only when it is whole."""
        unfinished = f"{to_local}.part"
        try:
            with self.client.open_input_stream(_key(path)) as source, open(unfinished, "wb") as target:
                while chunk := source.read(_CHUNK_BYTES):
                    target.write(chunk)
        except OSError as problem:
            raise _told(problem, path) from problem
        os.replace(unfinished, to_local)

    def moved(self, listed: SourceFile) -> str:
        """What became of an object since it was listed; empty when it is the same one."""
        from pyarrow.fs import FileType

        try:
            found = self.client.get_file_info(_key(listed.path))
        except OSError as problem:
            raise _told(problem, listed.path) from problem
        if found.type != FileType.File:
            return "is gone since it was listed"
        # Asked for one object a store tells its time in whole seconds, in a listing some are more exact.
        same = found.size == listed.size_bytes and found.mtime_ns // SECOND_NS == listed.modified_ns // SECOND_NS
        return "" if same else "changed since it was listed"

    def put(self, local: str, to: str) -> None:
        """Upload a local file; the object appears only when all of it has arrived."""
        try:
            with open(local, "rb") as source, self.client.open_output_stream(_key(to)) as target:
                while chunk := source.read(_CHUNK_BYTES):
                    target.write(chunk)
        except OSError as problem:
            raise _told(problem, to) from problem

    def write(self, body: bytes, to: str) -> None:
        """Make an object of these bytes."""
        try:
            with self.client.open_output_stream(_key(to)) as target:
                target.write(body)
        except OSError as problem:
            raise _told(problem, to) from problem

    def exists(self, path: str) -> bool:
        from pyarrow.fs import FileType

        try:
            return bool(self.client.get_file_info(_key(path)).type == FileType.File)
        except OSError as problem:
            raise _told(problem, path) from problem

    def delete(self, path: str) -> bool:
        """Delete an object; False when there was none."""
        if not self.exists(path):
            return False
        try:
            self.client.delete_file(_key(path))
        except OSError as problem:
            raise _told(problem, path) from problem
        return True


def client_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """Iceberg's S3 properties as arguments of PyArrow's S3 client."""
    options: dict[str, Any] = {}
    endpoint = (
        properties.get("s3.endpoint") or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    )
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        options["endpoint_override"] = host.rstrip("/")
        options["scheme"] = scheme or "https"
    region = properties.get("s3.region") or properties.get("client.region")
    region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region:
        options["region"] = region
    if properties.get("s3.access-key-id"):
        options["access_key"] = properties["s3.access-key-id"]
        options["secret_key"] = properties.get("s3.secret-access-key", "")
        if properties.get("s3.session-token"):
            options["session_token"] = properties["s3.session-token"]
    if endpoint:
        # Stores with an address of their own rarely have one per bucket.
        options["force_virtual_addressing"] = properties.get("s3.path-style-access", "true").lower() == "false"
    return options


def _key(address: str) -> str:
    return address.removeprefix("s3://").rstrip("/")


def _told(problem: OSError, where: str) -> RelayoutError:
    text = str(problem)
    if isinstance(problem, FileNotFoundError) or "NO_SUCH_KEY" in text or "NO_SUCH_BUCKET" in text:
        return MissingError("the bucket or object does not exist", where=where, next="check the source's pattern")
    if "ACCESS_DENIED" in text or "403" in text:
        return SourceError("the store refused access", where=where, next="check the keys and the bucket's policy")
    return EnvironmentProblem(
        f"the object store did not answer as it should: {text[:300]}",
        where=where,
        next="check endpoint, region and keys; `relayout doctor` tries them",
        retry=Retry.SAFE,
    )
