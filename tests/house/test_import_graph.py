"""Imports point one way, working rooms know nothing of each other, and three things stay where they belong:
the JVM in `spark/jvm/`, changing the world in `commit/`, joining rooms in `jobs/`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

Sources = Mapping[str, str]

WORKING_ROOMS = {"ingest", "alternates", "compact", "parquet", "sink", "dml", "upkeep"}

# From the ground up. Rooms on one floor do not see each other. `cli` stands on `web` because `relayout ui` starts it.
FLOORS: list[set[str]] = [
    {"errors"},
    {"config"},
    {"table"},
    {"ledger"},
    {"read"},
    {f"{room}/plan" for room in WORKING_ROOMS},
    {"kernels"},
    {"spark"},
    {f"{room}/run" for room in WORKING_ROOMS},
    {"commit"},
    {"report"},
    {"jobs"},
    {"api"},
    {"web"},
    {"cli"},
    {"__main__", "relayout"},
]
FLOOR = {place: floor for floor, places in enumerate(FLOORS) for place in places}

JVM_NAMES = {"py4j", "_jvm", "_jsparkSession", "_jsc", "_jdf", "_gateway", "java_gateway"}

# Calls that make rows visible or make them vanish, as Spark, Iceberg and PyIceberg spell them.
CHANGING_CALLS = {
    "add_files",
    "commit",
    "commitTransaction",
    "commit_table",
    "commit_transaction",
    "createOrReplace",
    "create_table",
    "create_table_if_not_exists",
    "deleteOrphanFiles",
    "drop_table",
    "dynamic_partition_overwrite",
    "expireSnapshots",
    "insertInto",
    "overwrite",
    "overwritePartitions",
    "purge_table",
    "register_table",
    "rename_table",
    "rewriteDataFiles",
    "rewriteManifests",
    "rewritePositionDeletes",
    "saveAsTable",
    "upsert",
    "writeTo",
}
CHANGING_SQL = re.compile(
    r"\s*(ALTER|CALL|CREATE|DELETE|DROP|INSERT|MERGE|REPLACE|TRUNCATE|UPDATE)\b"
    r"(?!\s+(OR\s+REPLACE\s+)?(GLOBAL\s+)?TEMP(ORARY)?\b)",
    re.IGNORECASE,
)
# Kernels and the read-only doors speak SQL to DuckDB in memory, never to a catalog.
DUCKDB_ROOMS = {"kernels", "read"}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def place_of(module: str) -> str:
    """The room a module belongs to; a working room has two: what plans, and what runs."""
    _, *parts = module.split(".")
    if not parts:
        return "relayout"
    if parts[0] in WORKING_ROOMS:
        return f"{parts[0]}/{'run' if parts[1:2] == ['run'] else 'plan'}"
    return parts[0]


def imports_of(module: str, sources: Sources) -> Iterator[tuple[int, str, str]]:
    """Line, imported module of this package, imported name; also those inside functions and for types only."""
    for node in ast.walk(ast.parse(sources[module])):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names if within(alias.name, "relayout"))
        elif isinstance(node, ast.ImportFrom):
            target = node.module or ""
            assert not node.level, f"{module}:{node.lineno}: a relative import"
            if within(target, "relayout"):
                for alias in node.names:
                    inner = f"{target}.{alias.name}"
                    yield (node.lineno, inner, "") if inner in sources else (node.lineno, target, alias.name)
        elif isinstance(node, ast.Call) and name_of(node.func) in {"import_module", "__import__"}:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and within(str(argument.value), "relayout"):
                    yield node.lineno, str(argument.value), ""


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def homeless_modules(sources: Sources) -> list[str]:
    return [f"{module}: no floor is named for it" for module in sources if place_of(module) not in FLOOR]


def upward_imports(sources: Sources) -> list[str]:
    found = []
    for module in sources:
        here = place_of(module)
        for line, target, name in imports_of(module, sources):
            there = place_of(target)
            if there == here or (target == "relayout" and name == "__version__"):
                continue
            if here.split("/")[0] == there.split("/")[0] and FLOOR[here] > FLOOR[there]:
                continue
            if here.split("/")[0] in WORKING_ROOMS and there.split("/")[0] in WORKING_ROOMS:
                found.append(f"{module}:{line}: room {here} imports room {there}; only jobs/ joins rooms")
            elif FLOOR.get(there, len(FLOORS)) >= FLOOR.get(here, -1):
                found.append(f"{module}:{line}: {here} imports {there}, which does not lie below it")
    return found


def import_cycles(sources: Sources) -> list[str]:
    """Rings of modules, also inside one room; a package that names its own modules counts as standing on them."""
    graph = {
        module: {target for _, target, _ in imports_of(module, sources) if target in sources and target != module}
        for module in sources
    }
    graph["relayout"] = set()  # its doors open on first use
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" -> ".join(error.args[1])]
    return []


def jvm_leaks(sources: Sources) -> list[str]:
    found = []
    for module in sources:
        if within(module, "relayout.spark.jvm"):
            continue
        for node in ast.walk(ast.parse(sources[module])):
            found += [f"{module}:{node.lineno}: {name}" for name in jvm_names_in(node)]  # type: ignore[attr-defined]
    return found


def jvm_names_in(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            used = [part for alias in names for part in alias.name.split(".")]
        case ast.ImportFrom(module=module, names=names):
            used = [*(module or "").split("."), *(alias.name for alias in names)]
        case ast.Attribute(attr=name) | ast.Name(id=name):
            used = [name]
        case ast.Call(func=func, args=[_, ast.Constant(value=str(name)), *_]) if name_of(func) == "getattr":
            used = [name]
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]) if name_of(func) == "import_module":
            used = name.split(".")
        case _:
            used = []
    return [name for name in used if name in JVM_NAMES]


def changes_outside_commit(sources: Sources) -> list[str]:
    """Changing calls and changing SQL outside `commit/`.

    `spark/jvm/` may spell such a call, but only in a function named `commit_…`, and only `commit/` may use that one.
    """
    found = []
    borrowed = commits_of_the_jvm(sources)
    for module in sources:
        if within(module, "relayout.commit"):
            continue
        tree = ast.parse(sources[module])
        if within(module, "relayout.spark.jvm"):
            found += [f"{module}:{line}: {what} outside a commit_… function" for line, what in unnamed_changes(tree)]
            continue
        found += [f"{module}:{line}: {what} outside commit/" for line, what in changing_calls(tree)]
        if place_of(module) not in DUCKDB_ROOMS:
            found += [f"{module}:{line}: {what} outside commit/" for line, what in changing_sql(tree)]
        found += [f"{module}:{line}: {what} outside commit/" for line, what in borrowed_commits(tree, borrowed)]
    return found


def changing_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING_CALLS:
            yield node.lineno, f".{node.func.attr}()"


def changing_sql(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "sql"
            and node.args
        ):
            text = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            if isinstance(text, ast.Constant) and (verb := CHANGING_SQL.match(str(text.value))):
                yield node.lineno, f".sql({verb[1].upper()} …)"


def unnamed_changes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Changing calls, and calls of functions that make them, in functions whose name does not say so."""
    allowed = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name.lstrip("_").startswith("commit_")
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and id(node) not in allowed:
            name = name_of(node.func)
            if (isinstance(node.func, ast.Attribute) and name in CHANGING_CALLS) or name.lstrip("_").startswith(
                "commit_"
            ):
                yield node.lineno, f"{name}()"


def commits_of_the_jvm(sources: Sources) -> set[str]:
    """The public `commit_…` functions and methods of `spark/jvm/`."""
    return {
        node.name
        for module in sources
        if within(module, "relayout.spark.jvm")
        for node in ast.walk(ast.parse(sources[module]))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("commit_")
    }


def borrowed_commits(tree: ast.AST, names: set[str]) -> Iterator[tuple[int, str]]:
    """Uses of them: imported by name, or reached through their module or an object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and within(node.module or "", "relayout.spark"):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in names)
        elif isinstance(node, ast.Attribute) and node.attr in names:
            yield node.lineno, f".{node.attr}"


def test_every_module_has_a_floor(package: Sources) -> None:
    assert not (faults := homeless_modules(package)), "\n".join(faults)


def test_imports_point_one_way(package: Sources) -> None:
    assert not (faults := upward_imports(package)), "\n".join(faults)


def test_no_ring_of_imports(package: Sources) -> None:
    assert not (faults := import_cycles(package)), "\n".join(faults)


def test_only_spark_jvm_knows_the_jvm(package: Sources) -> None:
    assert not (faults := jvm_leaks(package)), "\n".join(faults)


def test_only_commit_changes_the_world(package: Sources) -> None:
    assert not (faults := changes_outside_commit(package)), "\n".join(faults)


# The tests above are worth what they catch; each rule is broken here on purpose.


def house(**modules: str) -> dict[str, str]:
    """Modules given as `ingest__plan="source"`, beside the ones they may lean on."""
    lower = dict.fromkeys(["relayout", "relayout.errors", "relayout.table", "relayout.table.files"], "")
    return lower | {"relayout." + name.replace("__", "."): source for name, source in modules.items()}


def test_a_room_without_a_floor_is_caught() -> None:
    assert homeless_modules(house(attic="")) == ["relayout.attic: no floor is named for it"]
    assert homeless_modules(house(ingest__plan="", ingest__run="", cli="")) == []


def test_an_import_upwards_is_caught_in_every_spelling() -> None:
    lower_imports_higher = [
        "from relayout.spark import session",
        "from relayout import spark",
        "import relayout.spark.session",
        "def late():\n    from relayout.spark.session import start",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from relayout.spark.session import Session",
        "import importlib\nimportlib.import_module('relayout.spark.session')",
    ]
    for source in lower_imports_higher:
        sources = house(spark="", spark__session="", kernels__order=source)
        assert len(upward_imports(sources)) == 1, source


def test_imports_downwards_pass() -> None:
    sources = house(
        ingest="",
        ingest__plan="from relayout import __version__, errors\nfrom relayout.table.files import DataFile",
        ingest__run="from relayout.ingest.plan import IngestPlan\nfrom relayout.kernels import order",
        kernels__order="from relayout.ingest.plan import IngestPlan",
        commit__publish="from relayout.ingest.run import staged",
        cli="from relayout.web import serve",
        web="",
    )
    assert upward_imports(sources) == []


def test_neighbours_are_caught() -> None:
    assert upward_imports(house(read="", ledger__records="from relayout import read")) != []
    assert upward_imports(house(compact__plan="", ingest__plan="from relayout.compact.plan import Group")) == [
        "relayout.ingest.plan:1: room ingest/plan imports room compact/plan; only jobs/ joins rooms"
    ]
    assert upward_imports(house(compact__plan="", ingest__run="import relayout.compact.plan")) != []
    assert upward_imports(house(compact__plan="", ingest__plan="", jobs__apply="import relayout.compact.plan")) == []


def test_a_plan_that_imports_its_own_run_is_caught() -> None:
    assert len(upward_imports(house(ingest__run="", ingest__plan="from relayout.ingest import run"))) == 1


def test_the_front_door_is_closed_to_rooms() -> None:
    assert len(upward_imports(house(table__files="from relayout import open"))) == 1


def test_a_ring_is_caught() -> None:
    ring = house(table__a="from relayout.table import b", table__b="from relayout.table.a import A")
    assert len(import_cycles(ring)) == 1
    assert import_cycles(house(table__a="from relayout.table import b", table__b="")) == []


def test_the_jvm_is_caught_in_every_spelling() -> None:
    leaks = [
        "import py4j",
        "from py4j.java_gateway import JavaObject",
        "from pyspark import java_gateway",
        "spark._jvm.java.lang.System.gc()",
        "spark._jsparkSession",
        "frame._jdf",
        "getattr(spark, '_jvm')",
        "import importlib\nimportlib.import_module('py4j.protocol')",
    ]
    for source in leaks:
        assert jvm_leaks(house(spark__session=source)) != [], source
        assert jvm_leaks(house(spark__jvm__bridge=source)) == [], source
    assert jvm_leaks(house(spark__session="'the _jvm and py4j in words'  # _jvm")) == []


def test_a_change_outside_commit_is_caught() -> None:
    changes = [
        "operation.commit()",
        "frame.writeTo(name).overwritePartitions()",
        "table.overwrite(rows)",
        "catalog.drop_table(name)",
        "spark.sql('CALL lake.system.expire_snapshots()')",
        "spark.sql(f'insert into {name} values (1)')",
        "spark.sql('DROP TABLE t')",
    ]
    for source in changes:
        assert changes_outside_commit(house(ingest__run=source)) != [], source
        assert changes_outside_commit(house(commit__publish=source)) == [], source


def test_reading_and_temporary_views_pass() -> None:
    reading = "spark.sql('SELECT 1')\nspark.sql(f'CREATE OR REPLACE TEMPORARY VIEW v AS {q}')\nspark.sql(query)"
    assert changes_outside_commit(house(ingest__run=reading)) == []
    assert changes_outside_commit(house(kernels__order="duck.sql('CREATE TABLE rows (a INT)')")) == []


def test_the_jvm_changes_the_world_only_for_commit_and_by_name() -> None:
    named = "def commit_delta(op: object) -> None:\n    op.commit()"
    hidden = "def tidy(op: object) -> None:\n    op.commit()"
    wrapped = named + "\ndef tidy(op: object) -> None:\n    commit_delta(op)"
    assert changes_outside_commit(house(spark__jvm__delta=named)) == []
    assert changes_outside_commit(house(spark__jvm__delta=hidden)) != []
    assert changes_outside_commit(house(spark__jvm__delta=wrapped)) != []
    for use in [
        "from relayout.spark.jvm.delta import commit_delta",
        "from relayout.spark.jvm import delta\ndelta.commit_delta(op)",
        "table.commit_delta(rows)",
    ]:
        assert changes_outside_commit(house(spark__jvm__delta=named, sink__run=use)) != [], use
        assert changes_outside_commit(house(spark__jvm__delta=named, commit__sink=use)) == [], use
