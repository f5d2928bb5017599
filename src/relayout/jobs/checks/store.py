"""Whether an object store gives back what it was given, by each of the two clients that a run uses."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from relayout.config import Config
from relayout.errors import EnvironmentProblem, RelayoutError
from relayout.kernels.places import place_for
from relayout.spark.jars import ensure_jars, jars_for
from relayout.spark.session import catalog_settings
from relayout.table.quantities import size_text
from relayout.upkeep.findings import Finding, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROBE = bytes(range(256)) * 256

FRAMING = b";chunk-signature="
"""What a store leaves in an object when it takes the parts of a chunked upload for its content."""


class SpoiledStore(EnvironmentProblem):
    """A store that gives back something else than it was given."""


def probe_address(folder: str) -> str:
    """A name that nobody has."""
    return f"{folder.rstrip('/')}/.relayout-probe-{uuid.uuid4().hex}"


def stored_by_spark(spark: SparkSession, config: Config) -> Finding:
    """The round trip once more, written as Spark writes metadata: its client talks to stores in another way."""
    from relayout.spark.jvm.gateway import fetch_with_spark, load_jars
    from relayout.spark.jvm.objects import write_object

    load_jars(spark, ensure_jars(jars_for(config), fetch_with_spark))
    prefix = f"spark.sql.catalog.{config.catalog.name}."
    settings = {key.removeprefix(prefix): value for key, value in catalog_settings(config).items()}
    address = probe_address(config.warehouse)
    place = place_for(address, config.catalog.properties)
    try:
        write_object(spark, address, PROBE, settings)
        require_whole(stored_content(config, address))
    except Exception as error:  # noqa: BLE001
        # Java, PyIceberg and PyArrow fail in their own words; here each of them is a finding.
        what = error.what if isinstance(error, RelayoutError) else str(error).strip().split("\n", 1)[0][:300]
        helps = error.next if isinstance(error, RelayoutError) else ""
        fix = "check s3.endpoint, s3.path-style-access, client.region and the keys in catalog.properties"
        return Finding("storage", State.PROBLEM, f"as Spark writes: {what} ({config.warehouse})", helps or fix)
    finally:
        # What failed first is what people must know; half a probe may be there all the same.
        with suppress(RelayoutError, OSError):
            place.remove(address)
    return Finding("storage", State.OK, f"{size_text(len(PROBE))} written by Spark came back whole")


def stored_content(config: Config, address: str) -> bytes:
    """An object or file as tables are read."""
    from pyiceberg.io import load_file_io

    with load_file_io(dict(config.catalog.properties), address).new_input(address).open() as stored:
        return bytes(stored.read())


def require_whole(content: bytes) -> None:
    """EnvironmentProblem when what came back is not what was written."""
    if content == PROBE:
        return
    what = f"{len(PROBE):,} bytes were written, and {len(content):,} other ones came back"
    if FRAMING in content or content.split(b"\r\n", 1)[0].isalnum():
        raise SpoiledStore(
            f"{what}: the store keeps the framing of chunked uploads inside the objects",
            next='below `catalog.properties` write `s3.chunked-encoding-enabled: "false"`, or use another store',
        )
    raise SpoiledStore(what, next="tables in this store would be corrupt: use another one")
