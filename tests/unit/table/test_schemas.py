from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.errors import SchemaConflict
from relayout.table.schemas import Column, Evolution, TypeConflict, evolution, merged_schema, schema_hash

types = st.sampled_from(["null", "int", "long", "double", "string", "list<long>", "struct<a: long, b: string>"])
columns = st.dictionaries(st.sampled_from("abcdef"), types).map(lambda items: tuple(items.items()))
schemas = columns.map(lambda pairs: tuple(Column(name, type) for name, type in pairs))


def test_files_add_up_by_name_in_order_of_appearance() -> None:
    merged = merged_schema([("f1", [("a", "long"), ("b", "null")]), ("f2", [("c", "string"), ("a", "double")])])
    assert merged.columns == (Column("a", "double"), Column("b", "null"), Column("c", "string"))
    assert merged.conflicts == ()


def test_a_conflict_names_each_type_with_the_first_file_that_has_it() -> None:
    merged = merged_schema(
        [
            ("f0", [("a", "null")]),
            ("f1", [("a", "long")]),
            ("f2", [("a", "long"), ("b", "int")]),
            ("f3", [("a", "string")]),
        ]
    )
    assert merged.columns == (Column("b", "int"),)
    assert merged.conflicts == (TypeConflict("a", (("long", "f1"), ("string", "f3"))),)
    assert str(merged.conflicts[0]) == "column 'a' is long in f1, but string in f3"


def test_a_declared_type_wins_over_what_files_hold() -> None:
    merged = merged_schema(
        [("f1", [("a", "long"), ("b", "int")]), ("f2", [("a", "string")])], declared={"z": "DATE", "a": "string"}
    )
    assert merged.columns == (Column("a", "string"), Column("b", "int"), Column("z", "date"))
    assert merged.conflicts == ()


def test_names_that_differ_in_case_only_are_refused_with_their_files() -> None:
    with pytest.raises(SchemaConflict) as caught:
        merged_schema([("f1", [("Year", "int")]), ("f2", [("year", "int")])])
    assert caught.value.where == "'Year' in f1, 'year' in f2"
    with pytest.raises(SchemaConflict):
        evolution((Column("Year", "int"),), (Column("year", "int"),))


@given(st.lists(st.tuples(st.text(max_size=3), columns), max_size=6), st.randoms())
def test_the_order_of_files_changes_neither_types_nor_conflicts(sources: list, shuffler: object) -> None:
    shuffled = list(sources)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = merged_schema(sources), merged_schema(shuffled)
    assert set(first.columns) == set(second.columns)
    assert {conflict.column for conflict in first.conflicts} == {conflict.column for conflict in second.conflicts}
    assert schema_hash(first.columns) == schema_hash(second.columns)


@given(schemas)
def test_a_schema_hash_is_blind_to_order_and_requiredness_only(schema: tuple[Column, ...]) -> None:
    turned = tuple(Column(column.name, column.type, required=True) for column in reversed(schema))
    assert schema_hash(turned) == schema_hash(schema)
    assert len(schema_hash(schema)) == 16
    assert schema_hash((*schema, Column("other", "int"))) != schema_hash(schema)


def test_a_schema_hash_tells_types_apart_but_not_field_order() -> None:
    assert schema_hash((Column("a", "int"),)) != schema_hash((Column("a", "long"),))
    assert schema_hash((Column("a", "struct<x: int, y: int>"),)) == schema_hash(
        (Column("a", "struct<y: int, x: int>"),)
    )


def test_an_evolution_tells_what_is_safe_from_what_is_not() -> None:
    current = (
        Column("id", "int"),
        Column("price", "double"),
        Column("name", "string"),
        Column("gone", "string"),
        Column("key", "long", required=True),
        Column("s", "struct<a: int>"),
    )
    wanted = (
        Column("id", "BIGINT"),
        Column("price", "long"),
        Column("name", "long"),
        Column("new", "date"),
        Column("unseen", "null"),
        Column("s", "struct<a: int, b: string>"),
    )
    assert evolution(current, wanted) == Evolution(
        added=(Column("new", "date"),),
        widened=(("id", "int", "long"), ("s", "struct<a: int>", "struct<a: int, b: string>")),
        missing=("gone",),
        incompatible=(("name", "string", "long"), ("key", "long", "null")),
    )
    assert evolution(current, wanted, wanted_is_text=True).incompatible == (("key", "long", "null"),)


@given(schemas)
def test_a_table_needs_no_change_for_its_own_schema(schema: tuple[Column, ...]) -> None:
    assert evolution(schema, schema) == Evolution()


@given(schemas, schemas)
def test_an_evolution_that_was_applied_leaves_nothing_to_do(
    current: tuple[Column, ...], wanted: tuple[Column, ...]
) -> None:
    step = evolution(current, wanted)
    wider = {name: new for name, _, new in step.widened}
    applied = (*(Column(column.name, wider.get(column.name, column.type)) for column in current), *step.added)
    again = evolution(applied, wanted)
    assert not again.changes_table
    assert again.incompatible == step.incompatible
