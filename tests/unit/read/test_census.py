"""Counting live files: what is small, what could be merged, what deletes there are; from manifests alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, LongType, NestedField

from relayout.read.census import MB, FileCensus, SpecFiles, census, files_in_manifests, size_class

SCHEMA = Schema(
    NestedField(1, "value", LongType(), required=False), NestedField(2, "year", IntegerType(), required=False)
)
BY_YEAR = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "year"))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = InMemoryCatalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("econ")
    return catalog.create_table("econ.income", SCHEMA, partition_spec=BY_YEAR)


def add(table: Table, year: int | None, sizes: list[int], content: DataFileContent = DataFileContent.DATA) -> None:
    """Entries in one snapshot; nobody opens the files that they name."""
    spec = table.spec()
    with table.transaction() as change, change.update_snapshot().fast_append() as added:
        for number, size in enumerate(sizes):
            file = DataFile.from_args(
                content=content,
                file_path=f"{table.location()}/data/{year}-{size}-{number}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(*([year] if spec.fields else [])),
                record_count=10,
                file_size_in_bytes=size,
            )
            file.spec_id = spec.spec_id
            added.append_data_file(file)


def test_a_table_without_snapshots_has_no_files(table: Table) -> None:
    assert census(table, 100 * MB, 128 * MB) == FileCensus()
    assert files_in_manifests(table) == 0


def test_files_are_counted_by_size_over_all_manifests(table: Table) -> None:
    add(table, 2020, [1 * MB, 8 * MB, 32 * MB])
    add(table, 2021, [128 * MB, 512 * MB])
    counted = census(table, 100 * MB, 128 * MB)
    assert counted.specs == (SpecFiles(0, 5, 681 * MB, (1, 1, 1, 1, 1)),)
    assert (counted.rows, counted.small_files, counted.data_files, counted.size_bytes) == (50, 3, 5, 681 * MB)
    assert files_in_manifests(table) == 5


def test_five_small_files_of_one_partition_are_merged_and_four_are_not(table: Table) -> None:
    add(table, 2020, [MB] * 5)
    add(table, 2021, [MB] * 4)
    counted = census(table, 100 * MB, 128 * MB)
    assert (counted.small_files, counted.excess_files, counted.lone_files) == (9, 4, 4)


def test_two_small_files_that_fill_one_are_merged(table: Table) -> None:
    add(table, 2020, [90 * MB, 90 * MB, 90 * MB])
    assert census(table, 100 * MB, 128 * MB).excess_files == 0
    assert census(table, 100 * MB, 270 * MB).excess_files == 2


def test_files_of_different_partitions_are_never_merged(table: Table) -> None:
    for year in (-1, -2, 0, 1, None):
        add(table, year, [MB] * 3)
    counted = census(table, 100 * MB, 128 * MB)
    assert (counted.small_files, counted.excess_files, counted.lone_files) == (15, 0, 15)


def test_files_of_different_specs_are_counted_apart_and_never_merged(table: Table) -> None:
    add(table, 2020, [MB] * 3)
    with table.update_spec() as change:
        change.remove_field("year")
    add(table, None, [MB] * 3)
    counted = census(table, 100 * MB, 128 * MB)
    assert counted.specs == (SpecFiles(0, 3, 3 * MB, (3, 0, 0, 0, 0)), SpecFiles(1, 3, 3 * MB, (3, 0, 0, 0, 0)))
    assert (counted.excess_files, counted.lone_files) == (0, 6)


def test_files_that_were_deleted_do_not_count(table: Table) -> None:
    schema = table.schema().as_arrow()
    for year in (2020, 2021):
        table.append(pa.Table.from_pylist([{"value": 1, "year": year}, {"value": 2, "year": year}], schema=schema))
    table.delete("year = 2020")
    counted = census(table, 100 * MB, 128 * MB)
    assert (counted.data_files, counted.rows) == (1, 2)


def test_delete_files_are_counted_by_kind_and_are_no_data(table: Table) -> None:
    add(table, 2020, [MB])
    add(table, 2020, [MB, MB], DataFileContent.POSITION_DELETES)
    add(table, 2020, [MB], DataFileContent.EQUALITY_DELETES)
    counted = census(table, 100 * MB, 128 * MB)
    assert (counted.data_files, counted.rows, counted.small_files) == (1, 10, 1)
    assert (counted.position_delete_files, counted.equality_delete_files, counted.delete_files) == (2, 1, 3)
    assert counted.deleted_rows == 20


@pytest.mark.parametrize(
    ("size_bytes", "position"), [(0, 0), (8 * MB - 1, 0), (8 * MB, 1), (512 * MB - 1, 3), (512 * MB, 4)]
)
def test_a_size_class_holds_its_lower_bound_and_not_its_upper(size_bytes: int, position: int) -> None:
    assert size_class(size_bytes) == position
