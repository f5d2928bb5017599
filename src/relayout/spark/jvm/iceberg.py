"""Iceberg's Java table: one row delta with a validator inside every commit retry.

Spark SQL cannot express a commit that removes whole files, adds deletes and adds files at once, so this goes to
`org.apache.iceberg.Table` itself. Files cross the border as one JSON array per kind; Java walks the array by itself
through method handles, because a call per file would cost more than the commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from relayout.spark.jvm.gateway import java_failure, make_active, start_callbacks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ContentFile = Mapping[str, Any]
"""A data or delete file in the JSON form of Iceberg's ContentFileParser."""

CONTENT_FILE = "org.apache.iceberg.ContentFile"
ROW_DELTA = "org.apache.iceberg.RowDelta"
REWRITE = "org.apache.iceberg.RewriteFiles"
JSON_NODE = "org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode"


@dataclass(frozen=True, slots=True)
class RowDelta:
    """What one snapshot changes, and what must not have changed under it since `base_snapshot_id`."""

    base_snapshot_id: int | None
    added_rows: Sequence[ContentFile] = ()
    removed_rows: Sequence[ContentFile] = ()
    added_deletes: Sequence[ContentFile] = ()
    removed_deletes: Sequence[ContentFile] = ()
    conflict_filter: Mapping[str, Any] | bool = True
    summary: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The same rows in other files: what goes, what comes, and the age that the rows keep.

    New files take `data_sequence_number`, so that a delete by key which lands meanwhile still reaches their rows.
    """

    base_snapshot_id: int
    data_sequence_number: int
    removed_rows: Sequence[ContentFile] = ()
    added_rows: Sequence[ContentFile] = ()
    removed_deletes: Sequence[ContentFile] = ()
    summary: Mapping[str, str] = field(default_factory=dict)


Summaries = Iterator[tuple[int, Callable[[str], str | None]]]
"""Snapshot ids, newest first, each with a way to look up a summary entry."""

Judge = Callable[[Summaries], str]
"""Looks at the snapshots a commit would land on; the empty text lets it pass, anything else says why not."""


class _Validator:
    """A Python judge as Iceberg's SnapshotAncestryValidator."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.verdict = ""
        self.failure: BaseException | None = None

    def validate(self, snapshots: Any) -> bool:
        try:
            self.verdict = self.judge(_summaries(snapshots))
        except Exception as error:  # noqa: BLE001
            # An exception here would reach Java as an unknown failure; refusing is certain, and the error is kept.
            self.failure = error
            self.verdict = f"the check itself failed: {error}"
        return not self.verdict

    def errorMessage(self) -> str:  # noqa: N802 (Java's name)
        return self.verdict

    class Java:
        implements = ("org.apache.iceberg.SnapshotAncestryValidator",)


class _Spares:
    """Takes note of the manifests that a commit would delete, as Java's Consumer, and lets none go."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def accept(self, path: str) -> None:
        self.paths.append(path)

    class Java:
        implements = ("java.util.function.Consumer",)


def _each(iterable: Any) -> Iterator[Any]:
    """The elements of a Java Iterable, which may be no List."""
    walk = iterable.iterator()
    while walk.hasNext():
        yield walk.next()


def _summaries(snapshots: Any) -> Summaries:
    for snapshot in _each(snapshots):
        summary = snapshot.summary()
        yield snapshot.snapshotId(), summary.get


class JavaTable:
    """A loaded table; `refresh` before relying on what it says about the present."""

    def __init__(self, spark: SparkSession, full_name: str) -> None:
        self._spark: Any = spark
        jvm: Any = self._spark._jvm
        self._jvm = jvm
        make_active(spark)
        try:
            self._table: Any = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
                self._spark._jsparkSession, full_name
            )
        except Exception as error:
            raise java_failure(error) or error from error

    def refresh(self) -> None:
        self._table.refresh()

    @property
    def schema_json(self) -> str:
        return str(self._jvm.org.apache.iceberg.SchemaParser.toJson(self._table.schema()))

    @property
    def current_snapshot_id(self) -> int | None:
        snapshot = self._table.currentSnapshot()
        return None if snapshot is None else int(snapshot.snapshotId())

    def data_location(self) -> str:
        """The folder that the table's own location provider puts data files into."""
        return str(self._table.locationProvider().newDataLocation("x"))[: -len("/x")]

    def commit_row_delta(self, delta: RowDelta, judge: Judge) -> None:
        """Commit or raise `JavaFailure`; the judge runs again in every retry that Iceberg makes by itself."""
        self._commit_judged(lambda: self._prepared(delta), judge)

    def commit_rewrite(self, rewrite: Rewrite, judge: Judge) -> None:
        """Commit or raise `JavaFailure`; fails when a replaced file went or got deletes by position since the base."""
        self._commit_judged(lambda: self._prepared_rewrite(rewrite), judge)

    def _commit_judged(self, prepare: Callable[[], Any], judge: Judge) -> None:
        """Have the judge in every retry, and no manifest deleted before the table itself was asked what it uses.

        Some catalogs report a conflict for a commit that landed; Iceberg then deletes what that commit wrote.
        """
        start_callbacks(self._spark)
        validator = _Validator(judge)
        spares = _Spares()
        try:
            prepared = prepare()
            prepared.validateWith(validator)
            prepared.deleteWith(spares)
            prepared.commit()
        except Exception as error:
            self._delete_unused(spares.paths)
            if validator.failure is not None:
                raise validator.failure from error
            raise java_failure(error) or error from error
        self._delete_unused(spares.paths)

    def _delete_unused(self, paths: Sequence[str]) -> None:
        """Delete manifests and lists of attempts that did not land; while the catalog is silent, they stay."""
        if not paths:
            return
        # What stays behind here is an orphan file, which is removed as such; how the commit ended is told elsewhere.
        with suppress(Py4JError):
            self._table.refresh()
            own = set(paths)
            used: set[str] = set()
            for snapshot in _each(self._table.snapshots()):
                if snapshot.manifestListLocation() in own:
                    used.add(snapshot.manifestListLocation())
                    used |= {manifest.path() for manifest in _each(snapshot.allManifests(self._table.io()))}
            for path in own - used:
                self._table.io().deleteFile(path)

    def commit_schema_union(self, schema_json: str) -> None:
        """Add the columns of another schema and widen types, matching by name, in one metadata change."""
        try:
            wanted = self._jvm.org.apache.iceberg.SchemaParser.fromJson(schema_json)
            self._table.updateSchema().unionByNameWith(wanted).commit()
        except Exception as error:
            raise java_failure(error) or error from error

    def commit_spec(self, fields: Sequence[tuple[str, str]]) -> None:
        """Make (column, transform) pairs the default spec in one metadata change; equal fields keep their ids."""
        try:
            update = self._table.updateSpec()
            wanted = {(column, transform) for column, transform in fields}
            names = self._table.schema()
            current = set()
            for item in self._table.spec().fields():
                pair = (names.findColumnName(item.sourceId()), str(item.transform().toString()))
                current.add(pair)
                if pair not in wanted and pair[1] != "void":
                    update.removeField(item.name())
            for column, transform in fields:
                if (column, transform) not in current:
                    update.addField(self._term(column, transform))
            update.commit()
        except Exception as error:
            raise java_failure(error) or error from error

    def _term(self, column: str, transform: str) -> Any:
        expressions = self._jvm.org.apache.iceberg.expressions.Expressions
        name, _, argument = transform.rstrip("]").partition("[")
        match name:
            case "identity":
                return expressions.ref(column)
            case "bucket":
                return expressions.bucket(column, int(argument))
            case "truncate":
                return expressions.truncate(column, int(argument))
            case "year" | "month" | "day" | "hour":
                return getattr(expressions, name)(column)
        raise ValueError(f"unknown transform {transform}")

    def commit_rollback(self, snapshot_id: int) -> None:
        try:
            self._table.manageSnapshots().rollbackTo(snapshot_id).commit()
        except Exception as error:
            raise java_failure(error) or error from error

    def _prepared(self, delta: RowDelta) -> Any:
        prepared = self._table.newRowDelta()
        for files, method, kind in (
            (delta.added_rows, "addRows", "DataFile"),
            (delta.removed_rows, "removeRows", "DataFile"),
            (delta.added_deletes, "addDeletes", "DeleteFile"),
            (delta.removed_deletes, "removeDeletes", "DeleteFile"),
        ):
            if files:
                self._hand_over(files, prepared, ROW_DELTA, method, f"org.apache.iceberg.{kind}")
        if delta.base_snapshot_id is not None:
            prepared.validateFromSnapshot(delta.base_snapshot_id)
        prepared.conflictDetectionFilter(
            self._jvm.org.apache.iceberg.expressions.ExpressionParser.fromJson(
                json.dumps(delta.conflict_filter), self._table.schema()
            )
        )
        touched = [str(path) for file in delta.added_deletes if (path := file.get("referenced-data-file"))]
        if touched:
            # A compaction that lands first would leave these deletes without their files, and the old rows alive.
            prepared.validateDataFilesExist(touched)
        prepared.validateNoConflictingDataFiles()
        prepared.validateNoConflictingDeleteFiles()
        prepared.validateDeletedFiles()
        for key, value in delta.summary.items():
            prepared.set(key, value)
        return prepared

    def _prepared_rewrite(self, rewrite: Rewrite) -> Any:
        prepared = self._table.newRewrite()
        for files, method, kind in (
            (rewrite.removed_rows, "deleteFile", "DataFile"),
            (rewrite.removed_deletes, "deleteFile", "DeleteFile"),
            (rewrite.added_rows, "addFile", "DataFile"),
        ):
            if files:
                self._hand_over(files, prepared, REWRITE, method, f"org.apache.iceberg.{kind}")
        prepared.validateFromSnapshot(rewrite.base_snapshot_id)
        if rewrite.added_rows:
            prepared.dataSequenceNumber(rewrite.data_sequence_number)
        for key, value in rewrite.summary.items():
            prepared.set(key, value)
        return prepared

    def _hand_over(self, files: Sequence[ContentFile], prepared: Any, owner: str, method: str, kind: str) -> None:
        """Make Java call `prepared.method(ContentFileParser.fromJson(node, specs))` for each element by itself."""
        handles = self._jvm.java.lang.invoke
        lookup = handles.MethodHandles.publicLookup()
        parse = lookup.findStatic(
            self._class("org.apache.iceberg.ContentFileParser"),
            "fromJson",
            self._method_type(CONTENT_FILE, JSON_NODE, "java.util.Map"),
        )
        parse = handles.MethodHandles.insertArguments(parse, 1, self._array("java.lang.Object", [self._table.specs()]))
        add = lookup.findVirtual(self._class(owner), method, self._method_type(owner, kind)).bindTo(prepared)
        add = add.asType(self._method_type(owner, CONTENT_FILE))
        both = handles.MethodHandles.filterArguments(add, 0, self._array("java.lang.invoke.MethodHandle", [parse]))
        consumer = handles.MethodHandleProxies.asInterfaceInstance(self._class("java.util.function.Consumer"), both)
        jackson = self._jvm.org.apache.iceberg.shaded.com.fasterxml.jackson
        mapper = jackson.databind.ObjectMapper()
        # Partitions of floating point columns may be NaN or infinite; Python writes these as JavaScript does.
        mapper.configure(getattr(jackson.core, "JsonParser$Feature").ALLOW_NON_NUMERIC_NUMBERS, True)
        mapper.readTree(json.dumps(files)).forEach(consumer)

    def _class(self, name: str) -> Any:
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self._jvm.java.lang.Class.forName(name, True, loader)

    def _array(self, type_name: str, items: Sequence[Any]) -> Any:
        holder = self._jvm
        for part in type_name.split("."):
            holder = getattr(holder, part)
        array = self._spark.sparkContext._gateway.new_array(holder, len(items))
        for index, item in enumerate(items):
            array[index] = item
        return array

    def _method_type(self, returned: str, *parameters: str) -> Any:
        types = self._array("java.lang.Class", [self._class(name) for name in parameters])
        return self._jvm.java.lang.invoke.MethodType.methodType(self._class(returned), types)
