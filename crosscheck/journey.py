"""The main journey on one lake: declare, plan, apply, nothing left, one file changes, only its batch is loaded again.

`python -m crosscheck.journey JOB.json` walks it in a process of its own, because a process has one Spark, and prints
what held and what broke. After each step three engines must see exactly the rows that were expected: Spark, PyIceberg
and the judge.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import relayout
from crosscheck.judge import Command, judged_rows
from crosscheck.samples import CHANGES, Sample, samples
from crosscheck.services.store import BUCKET, Store

if TYPE_CHECKING:
    from relayout.api import Lake
    from relayout.ingest.plan import IngestPlan

NAMESPACE = "econ"


@dataclass(frozen=True, slots=True)
class Job:
    """One journey: `config` says all but the tables, `sources` is a folder or an address on the store.

    `python` is what executors in other processes run, one that does not have relayout; empty where there are none.
    """

    config: Mapping[str, Any]
    sources: str
    store: Store | None = None
    judge: Command = ()
    python: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Job:
        store = Store(**told["store"]) if told["store"] else None
        return cls(told["config"], told["sources"], store, tuple(told["judge"]), told["python"])


class Broken(AssertionError):
    """A promise that did not hold."""


@dataclass(slots=True)
class Walk:
    """One walk over one lake; `held` collects what was seen to be true."""

    job: Job
    held: list[str] = field(default_factory=list)

    def whole(self) -> None:
        """Every step of the journey, in order."""
        first = samples(self.job.sources)
        self.put({path: content for sample in first for path, content in sample.files.items()})
        self.load(first)
        if self.job.python:
            self.see_where_kernels_come_from()
        second = samples(self.job.sources, 2)
        self.change(second)
        self.others_compact()
        self.change(samples(self.job.sources, 3))

    # Steps.

    def load(self, expected: Sequence[Sample]) -> None:
        """Everything is loaded once, and then nothing is left to do."""
        planned = self.lake().plan()
        found = {table.table: len(table.batches) for table in planned.tables}
        self.must("plan lists every batch", found, {sample.name: sample.batches for sample in expected})
        receipt = self.lake().apply(planned)
        self.must("apply loads every batch", _told(receipt.to_json()), (sum(found.values()), []))
        self.must("a second plan is empty", self.lake().plan().has_work, False)
        self.see_rows(expected, "loaded")

    def change(self, expected: Sequence[Sample]) -> None:
        """One file of each table is rewritten: exactly its batch is planned, loaded and seen anew."""
        wanted = {change.table: change for change in CHANGES}
        for sample in expected:
            path = wanted[sample.name].path
            self.put({path: sample.files[path]})
        before = {sample.name: self.files_beside(sample.name, wanted[sample.name].batch) for sample in expected}
        planned = self.lake().plan()
        batches = {change.table: [(dict(change.batch), "source changed", "")] for change in CHANGES}
        self.must("plan names only the changed batches", _planned(planned), batches)
        receipt = self.lake().apply()
        self.must("apply loads only those", _told(receipt.to_json()), (len(CHANGES), []))
        after = {sample.name: self.files_beside(sample.name, wanted[sample.name].batch) for sample in expected}
        self.must("rows of other batches stay where they are", after, before)
        self.must("then the plan is empty again", self.lake().plan().has_work, False)
        self.see_rows(expected, "changed")

    def others_compact(self) -> None:
        """Iceberg's own procedure merges files across batches; that is no edit and leaves nothing to do."""
        lake = self.lake()
        name = f"{lake.config.catalog.name}.{NAMESPACE}.wages"
        lake.sql(
            f"CALL {lake.config.catalog.name}.system.rewrite_data_files(table => '{name}', "
            "options => map('rewrite-all', 'true'))"
        ).collect()
        self.must("after a compaction by others nothing is left to do", lake.plan().has_work, False)

    def see_where_kernels_come_from(self) -> None:
        """Executors have no relayout of their own: what they import is the archive that the session brought."""
        found = self.lake().spark.sparkContext.parallelize([0], 1).map(_imported_from).collect()[0]
        archive, python = Path(found["relayout"]), found["python"]
        is_archive = archive.parent.parent.suffix == ".zip" or any(part.suffix == ".zip" for part in archive.parents)
        self.must("executors import the shipped archive", is_archive, True)
        self.must("and run another Python than the driver", python == sys.executable, False)
        self.must("in which relayout is not installed", found["without archive"], False)

    # What is seen.

    def see_rows(self, expected: Sequence[Sample], when: str) -> None:
        lake = self.lake()
        tables = {sample.name: lake.table(sample.name) for sample in expected}
        asked = {sample.name: (tables[sample.name].metadata_location, sample.columns) for sample in expected}
        properties = self.job.store.properties if self.job.store else {}
        judged = judged_rows(self.job.judge, asked, properties) if self.job.judge else {}
        for sample in expected:
            wanted = _texts(sample.rows)
            chosen = ", ".join(sample.columns)
            by_spark = [tuple(row) for row in lake.sql(f"SELECT {chosen} FROM {sample.name}").collect()]
            self.must(f"{when} {sample.name} by Spark", _texts(by_spark), wanted)
            arrow = tables[sample.name].scan(selected_fields=sample.columns).to_arrow()
            by_pyiceberg = [tuple(row[name] for name in sample.columns) for row in arrow.to_pylist()]
            self.must(f"{when} {sample.name} by PyIceberg", _texts(by_pyiceberg), wanted)
            if judged:
                self.must(f"{when} {sample.name} by the judge", _texts(judged[sample.name]), wanted)

    def files_beside(self, name: str, batch: Mapping[str, Any]) -> list[str]:
        """Data files that hold the rows of all other batches."""
        others = " OR ".join(f"{column} <> {value!r}" for column, value in batch.items())
        rows = self.lake().sql(f"SELECT DISTINCT _file FROM {name} WHERE {others}").collect()
        return sorted(row["_file"] for row in rows)

    # The lake and its sources.

    def lake(self) -> Lake:
        """Opened anew for each question, as a user's next command would."""
        tables = {sample.name: sample.declaration for sample in samples(self.job.sources)}
        return relayout.open({**self.job.config, "namespace": NAMESPACE, "tables": tables})

    def put(self, files: Mapping[str, bytes]) -> None:
        for path, content in files.items():
            if self.job.sources.startswith("s3://") and self.job.store:
                key = f"{self.job.sources.removeprefix(f's3://{BUCKET}/')}/{path}"
                self.job.store.client().put_object(Bucket=BUCKET, Key=key, Body=content)
            else:
                place = Path(self.job.sources, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)

    def must(self, what: str, found: object, wanted: object) -> None:
        if found != wanted:
            raise Broken(f"{what}: {_difference(found, wanted)}")
        self.held.append(what)


def _planned(plan: IngestPlan) -> dict[str, list[tuple[dict[str, Any], str, str]]]:
    return {
        table.table: [(dict(batch.key.items), batch.reason.value, batch.needs) for batch in table.batches]
        for table in plan.tables
    }


def _told(receipt: Mapping[str, Any]) -> tuple[int, list[str]]:
    """How many batches were done, and what the others say."""
    batches = [batch for table in receipt["tables"] for batch in table["batches"]]
    notes = [f"{batch['outcome']}: {batch['note']}" for batch in batches if batch["outcome"] != "done"]
    return receipt["done"], notes + [table["error"] for table in receipt["tables"] if table["error"]]


def _texts(rows: Iterable[Sequence[Any]]) -> Counter[tuple[str | None, ...]]:
    return Counter(tuple(None if value is None else str(value) for value in row) for row in rows)


def _difference(found: object, wanted: object) -> str:
    if isinstance(found, Counter) and isinstance(wanted, Counter):
        more, fewer = found - wanted, wanted - found
        return f"{more.total()} rows too many, {fewer.total()} missing, such as {[*more][:2]} and {[*fewer][:2]}"
    return f"found {found!r}, expected {wanted!r}"


def _imported_from(_: int) -> dict[str, Any]:
    """Runs in an executor, which does not have this module: everything it needs is inside."""
    import sys
    from importlib.machinery import PathFinder

    import relayout

    without = [entry for entry in sys.path if not entry.endswith(".zip")]
    return {
        "relayout": relayout.__file__,
        "python": sys.executable,
        "without archive": PathFinder.find_spec("relayout", without) is not None,
    }


def main(arguments: Sequence[str]) -> int:
    walk = Walk(Job.from_json(json.loads(Path(arguments[0]).read_text("utf-8"))))
    broken = ""
    try:
        walk.whole()
    except Broken as error:
        broken = str(error)
    print(json.dumps({"held": walk.held, "broken": broken}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
