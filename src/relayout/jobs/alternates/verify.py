"""`relayout verify`: whether alternates hold what they say, told by counts and checksums of the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relayout.alternates.freshness import freshest
from relayout.alternates.registry import Found
from relayout.commit.removals import batch_predicate
from relayout.config import Config
from relayout.errors import MissingError
from relayout.jobs.alternates.shelf import alternates_in
from relayout.read.catalog import CatalogReader
from relayout.read.tables import facts_of
from relayout.spark.session import ROUTING, set_for_now
from relayout.table.alternates import Account
from relayout.table.facts import TableFacts
from relayout.table.names import parse, quote_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class AlternateCheck:
    """One alternate against its base; `compared` says which rows, `differences` what was not equal."""

    name: str
    table: str
    compared: str
    rows: int
    differences: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "table": self.table,
            "compared": self.compared,
            "rows": self.rows,
            "equal": not self.differences,
            "differences": list(self.differences),
        }


@dataclass(frozen=True, slots=True)
class AlternatesCheck:
    """What was compared."""

    table: str
    snapshot_id: int | None
    alternates: tuple[AlternateCheck, ...]

    @property
    def clean(self) -> bool:
        return not any(one.differences for one in self.alternates)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kind": "verification",
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "clean": self.clean,
            "alternates": [one.to_json() for one in self.alternates],
        }


def check_alternates(spark: SparkSession, config: Config, table: str) -> AlternatesCheck:
    """Compare the rows that each alternate would serve with those of the base's current snapshot."""
    name = parse(table, config.namespace, config.catalog.name)
    reader = CatalogReader(config)
    native = reader.load(name)
    if native is None:
        raise MissingError(
            f"there is no table {name}", where=config.catalog.name, next="`relayout status` lists the tables"
        )
    base = facts_of(native, name)
    own = [one for one in alternates_in(reader, config) if one.is_of(base)]
    with set_for_now(spark, {ROUTING: "off"}):
        checks = tuple(_checked(spark, config, base, one) for one in own)
    return AlternatesCheck(str(name), base.current_snapshot_id, checks)


def _checked(spark: SparkSession, config: Config, base: TableFacts, found: Found) -> AlternateCheck:
    fresh = freshest(found.facts.ancestry, base.ancestry) if base.ancestry else None
    if fresh is None or base.current_snapshot_id is None:
        return AlternateCheck(found.name, found.table, "nothing, it is not served", 0)
    condition = _served(fresh.account, base)
    shared = [column.name for column in base.schema if _same_column(column.name, base, found.facts)]
    catalog = config.catalog.name
    there = _sums(spark, base.name.spark_sql(catalog), base.current_snapshot_id, base, shared, condition)
    here = _sums(spark, found.facts.name.spark_sql(catalog), fresh.snapshot_id, base, shared, condition)
    differences = [
        f"{what}: {here[what]} in the alternate, {there[what]} in the table"
        for what in there
        if here[what] != there[what]
    ]
    lacking = [column.name for column in base.schema if column.name not in shared]
    differences += [f"column {name} is missing or of another type" for name in lacking]
    return AlternateCheck(
        found.name, found.table, _compared(fresh.account), int(str(there["rows"])), tuple(differences)
    )


def _same_column(column: str, base: TableFacts, alternate: TableFacts) -> bool:
    kinds = {one.name: one.type for one in alternate.schema}
    return kinds.get(column) == base.type_of(column)


def _served(account: Account, base: TableFacts) -> str:
    if not account.batches:
        return "true"
    named = batch_predicate(account.batches, base)
    return f"({named})" if account.only else f"NOT ({named})"


def _compared(account: Account) -> str:
    if account.whole:
        return "all rows"
    listed = ", ".join(str(key) for key in account.batches[:10])
    return f"batches {listed}" if account.only else f"all rows but those of the stale batches {listed}"


def _sums(
    spark: SparkSession, table: str, snapshot_id: int, base: TableFacts, columns: Sequence[str], condition: str
) -> Mapping[str, object]:
    """Number of rows, nulls and sum of hashes per column, and one over whole rows, which tells values that moved."""
    hashed = [_hashable(name, base.type_of(name)) for name in columns]
    terms = ["count(*) AS n"]
    for number, (name, term) in enumerate(zip(columns, hashed, strict=True)):
        terms.append(f"count({quote_spark(name)}) AS c{number}")
        terms.append(f"sum(cast(xxhash64({term}) AS decimal(38, 0))) AS h{number}")
    terms.append(f"sum(cast(xxhash64({', '.join(hashed) or '1'}) AS decimal(38, 0))) AS whole")
    frame = spark.read.option("versionAsOf", str(snapshot_id)).table(table).where(condition)
    row = frame.selectExpr(*terms).collect()[0].asDict()
    told: dict[str, object] = {"rows": row["n"]}
    for number, name in enumerate(columns):
        told[f"values of {name}"] = row[f"c{number}"]
        told[f"checksum of {name}"] = row[f"h{number}"]
    return told | {"checksum of whole rows": row["whole"]}


def _hashable(column: str, kind: str) -> str:
    """The column in a form that Spark can hash; it refuses maps, also those inside other types."""
    quoted = quote_spark(column)
    return f"to_json(struct({quoted}))" if "map<" in kind else quoted
