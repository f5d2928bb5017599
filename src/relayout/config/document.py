"""The shape of `relayout.yaml` as it is written: the one source of validation and of the JSON Schema.

There are no unions among the models, so an error's location is always the path of keys in the file. Short forms (a
plain string for a key or for a list of one) are turned into the long form before they are validated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from relayout.config import words

TEXT = {"type": "string"}
SCALAR = {"type": ["string", "number", "boolean"]}
MEMORY = {"type": "string", "pattern": "^[1-9][0-9]*[kKmMgGtT][bB]?$"}
SIZE = {"type": ["string", "integer"], "examples": ["50gb", "512mb"]}
DURATION = {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? ?(ms|s|sec|m|min|h|d|w)$", "examples": ["30s", "7d"]}


def _checked(check: Callable[[Any], Any]) -> BeforeValidator:
    def validate(value: Any) -> Any:
        try:
            return check(value)
        except words.Wrong as wrong:
            raise PydanticCustomError("relayout", "{what}", {"what": wrong.what, "next": wrong.next}) from wrong

    return BeforeValidator(validate)


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _key_or_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _nothing_is_empty(value: Any) -> Any:
    return {} if value is None else value


def _list_schema(**limits: int) -> dict[str, Any]:
    item = {**TEXT, "minLength": 1}
    return {"oneOf": [item, {"type": "array", "items": item, **limits}]}


Name = Annotated[str, _checked(words.name), WithJsonSchema({**TEXT, "minLength": 1})]
TableName = Annotated[str, _checked(words.table_name), WithJsonSchema({**TEXT, "minLength": 1})]
Namespace = Annotated[str, _checked(words.namespace), WithJsonSchema({**TEXT, "minLength": 1})]
Text = Annotated[str, _checked(words.as_text), WithJsonSchema(TEXT)]
Column = Annotated[str, _checked(words.column), WithJsonSchema({**TEXT, "minLength": 1})]
SortText = Annotated[str, _checked(words.sort_text), WithJsonSchema({**TEXT, "minLength": 1})]
TypeText = Annotated[str, _checked(words.type_text), WithJsonSchema({**TEXT, "examples": ["INTEGER", "decimal(18,2)"]})]
Transform = Annotated[
    str,
    _checked(words.transform),
    WithJsonSchema({**TEXT, "examples": ["identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour"]}),
]
Expression = Annotated[str, _checked(words.expression), WithJsonSchema(SCALAR)]
Setting = Annotated[str, _checked(words.as_setting), WithJsonSchema(SCALAR)]
Pattern = Annotated[str, _checked(words.source_pattern), WithJsonSchema({**TEXT, "minLength": 1})]
Memory = Annotated[str, _checked(words.memory), WithJsonSchema(MEMORY)]
Size = Annotated[int, _checked(words.size), WithJsonSchema(SIZE)]
Seconds = Annotated[float, _checked(words.seconds), WithJsonSchema(DURATION)]
Days = Annotated[float, _checked(words.days), WithJsonSchema(DURATION)]
Patterns = Annotated[
    list[Pattern], BeforeValidator(_one_or_many), Field(min_length=1), WithJsonSchema(_list_schema(minItems=1))
]
Columns = Annotated[list[Column], BeforeValidator(_one_or_many), WithJsonSchema(_list_schema())]


class Section(BaseModel):
    """A mapping whose keys are all known; a key without a value stands for an empty one."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        hide_input_in_errors=True,
        json_schema_extra=lambda schema: schema.pop("description", None),
    )

    _nothing = model_validator(mode="before")(_nothing_is_empty)


class CatalogSection(Section):
    """`catalog`: where tables are registered."""

    name: Annotated[Name, Field(description="Name of the catalog in Spark and PyIceberg.")] = "lake"
    type: Annotated[Literal["jdbc", "rest", "hadoop", "hive", "glue"], Field(description="Kind of catalog.")] = "jdbc"
    uri: Annotated[
        Text | None, Field(description="Address; a local JDBC catalog defaults to SQLite in the warehouse.")
    ] = None
    properties: Annotated[dict[str, Setting], Field(description="Iceberg catalog properties.")] = {}


class SparkSection(Section):
    """`spark`: the session that does the work."""

    master: Annotated[Name, Field(description="Spark master.")] = "local[*]"
    driver_memory: Annotated[Memory, Field(description="Heap of the driver.")] = "4g"
    task_memory: Annotated[Memory, Field(description="What one task's kernel may use before it spills.")] = "1g"
    conf: Annotated[dict[str, Setting], Field(description="Spark settings that tune; none that load code.")] = {}


class DefaultsSection(Section):
    """`defaults`: what holds for every table."""

    format_version: Annotated[Literal[2, 3], Field(description="Iceberg format of new tables.")] = 2
    target_file_mb: Annotated[int, Field(ge=1, le=1_048_576, description="Size of written files.")] = 512
    retries: Annotated[int, Field(ge=0, le=1000, description="Tries for a failing batch.")] = 3
    retry_delay_ms: Annotated[int, Field(ge=0, le=86_400_000, description="First delay between tries; it grows.")] = (
        1000
    )
    routing_budget_ms: Annotated[int, Field(ge=0, le=86_400_000, description="Time a query's routing may take.")] = 150


class KeySection(Section):
    """One level of a partitioning."""

    name: Annotated[Column, Field(description="Column.")]
    type: Annotated[TypeText | None, Field(description="Type; taken from the data when left out.")] = None
    transform: Annotated[Transform, Field(description="Iceberg partition transform.")] = "identity"


class _OrName:
    """Tells the JSON Schema that a plain string stands for `{name: ...}`."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"oneOf": [{**TEXT, "minLength": 1}, handler(core)]}


Key = Annotated[KeySection, BeforeValidator(_key_or_name), _OrName()]


class PartitionsSection(Section):
    """`partitions`: the levels of a layout."""

    style: Annotated[Literal["hive"], Field(description="How partitions are written in paths.")] = "hive"
    keys: Annotated[
        list[Key], Field(description="Partition keys, outermost first; plain names or {name, type, transform}.")
    ] = []


class ClusterSection(Section):
    """`cluster`: rows along a space-filling curve."""

    curve: Annotated[Literal["zorder", "hilbert"], Field(description="Curve.")]
    by: Annotated[Columns, Field(min_length=1, description="Columns.")]


class AlternateSection(Section):
    """One entry of `alternate_partitions`."""

    name: Annotated[Name, Field(description="Description of the layout, for people.")]
    partition: Annotated[PartitionsSection, Field(description="Layout of the alternate.")] = PartitionsSection()
    sort: Annotated[list[SortText], Field(description="`column` or `column desc`.")] = []
    cluster: Annotated[ClusterSection | None, Field(description="Instead of `sort`.")] = None
    batch_partition_columns: Annotated[
        Columns | None, Field(description="Batches; those of the table when left out.")
    ] = None
    incremental_keys: Annotated[Columns | None, Field(description="What is tracked; the batches when left out.")] = None


class PolicySection(Section):
    """`policy`: limits of a table's upkeep."""

    compact_below_mb: Annotated[int | None, Field(ge=1, le=1_048_576, description="Compact files below this size.")] = (
        None
    )
    expire_days: Annotated[
        float | None, Field(ge=0, le=36_500, allow_inf_nan=False, description="Keep snapshots for.")
    ] = None
    max_bytes_per_run: Annotated[Size | None, Field(description="Most bytes rewritten in one run.")] = None


class TableSection(Section):
    """One entry of `tables`."""

    source: Annotated[Patterns | None, Field(description="Where the files are: one pattern or a list.")] = None
    format: Annotated[
        Literal["json", "csv", "parquet"] | None, Field(description="From the file names when left out.")
    ] = None
    schema_: Annotated[
        dict[str, TypeText], Field(alias="schema", description="Declared types; they win over inference.")
    ] = {}
    columns: Annotated[
        dict[str, Expression], Field(description="Columns from Spark SQL expressions and constants.")
    ] = {}
    partitions: Annotated[PartitionsSection, Field(description="Layout of the table.")] = PartitionsSection()
    sort: Annotated[list[SortText], Field(description="`column` or `column desc`.")] = []
    batch_partition_columns: Annotated[
        Columns | None, Field(description="Batches; the identity keys when left out.")
    ] = None
    incremental_keys: Annotated[Columns | None, Field(description="What is tracked; the batches when left out.")] = None
    on_removed: Annotated[Literal["keep", "delete"], Field(description="Rows of source files that went away.")] = "keep"
    alternate_partitions: Annotated[list[AlternateSection], Field(description="Other layouts of the same rows.")] = []
    policy: Annotated[PolicySection, Field(description="What upkeep does by itself.")] = PolicySection()


class FromSection(Section):
    """`from`: where a stream's changes come from."""

    kafka: Annotated[dict[str, Setting] | None, Field(description="Options of Spark's Kafka source.")] = None
    files: Annotated[Patterns | None, Field(description="Files with one change per line.")] = None


class StreamSection(Section):
    """One entry of `streams`."""

    table: Annotated[TableName | None, Field(description="Target; the table of the stream's name when left out.")] = (
        None
    )
    from_: Annotated[FromSection, Field(alias="from", description="Kafka or files.")]
    envelope: Annotated[
        Literal["debezium", "debezium-flat", "upsert", "before-after", "append"], Field(description="How changes look.")
    ] = "debezium"
    key: Annotated[
        Columns, Field(description="Columns that identify a row; needed unless the envelope is append.")
    ] = []
    sequence: Annotated[Columns, Field(description="Columns that order the changes of a row.")] = []
    deletes: Annotated[Literal["resolved", "equality"], Field(description="How deletes are written.")] = "resolved"
    commit_interval: Annotated[
        Seconds, Field(description="Time between commits.", json_schema_extra={"default": "30s"})
    ] = 30.0
    file_prefix: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9._-]{1,60}$", description="How data files' names begin.")
    ] = "relayout"
    tombstones: Annotated[
        Days, Field(description="How long deleted keys are known.", json_schema_extra={"default": "7d"})
    ] = 7.0
    dead_letters: Annotated[TableName | None, Field(description="Table for rows that cannot be applied.")] = None


class FileSection(Section):
    """The whole file."""

    warehouse: Annotated[Text, Field(description="Folder or s3://bucket/prefix.")] = "./lake"
    namespace: Annotated[Namespace, Field(description="Where bare table names are.")] = "default"
    catalog: Annotated[CatalogSection, Field(description="Where table metadata lives.")] = CatalogSection()
    spark: Annotated[SparkSection, Field(description="How a session is started.")] = SparkSection()
    defaults: Annotated[DefaultsSection, Field(description="What holds for every table.")] = DefaultsSection()
    tables: Annotated[dict[TableName, TableSection], Field(description="Tables by name.")] = {}
    streams: Annotated[dict[Name, StreamSection], Field(description="Change streams by name.")] = {}
