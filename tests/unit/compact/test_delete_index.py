"""Delete files reach exactly the data files that Iceberg's specification says."""

from __future__ import annotations

from relayout.compact.delete_index import DeleteIndex
from relayout.table.live_entries import (
    DATA,
    EQUALITY_DELETES,
    NO_COUNTS,
    POSITION_DELETES,
    ColumnCounts,
    LiveEntry,
)
from relayout.table.partition_keys import PartitionKey

EU, US, EVERYWHERE = PartitionKey(1, ("eu",)), PartitionKey(1, ("us",)), PartitionKey(0)
EU_OF_ANOTHER_SPEC = PartitionKey(2, ("eu",))


def entry(
    content: int,
    path: str,
    sequence: int,
    *,
    file: str = "",
    vector: int | None = None,
    ids: tuple[int, ...] = (),
    counts: ColumnCounts = NO_COUNTS,
    rows: int = 2,
) -> LiveEntry:
    return LiveEntry(content, path, "parquet", 0, (), rows, 10, sequence, None, counts, file, vector, vector, ids)


def index_of(*told: tuple[LiveEntry, PartitionKey]) -> DeleteIndex:
    index = DeleteIndex({1: "long"})
    for delete, key in told:
        index.add(delete, key)
    index.finish()
    return index


def reached(
    index: DeleteIndex, sequence: int, key: PartitionKey, path: str = "d", counts: ColumnCounts = NO_COUNTS
) -> list[str]:
    places = index.deletes_of(entry(DATA, path, sequence, counts=counts), key)
    return [index.deletes[place].path for place in places]


def test_position_deletes_reach_data_that_is_not_newer_in_their_own_partition() -> None:
    index = index_of((entry(POSITION_DELETES, "p5", 5), EU), (entry(POSITION_DELETES, "p3", 3), EU))
    assert reached(index, 5, EU) == ["p5"]
    assert reached(index, 3, EU) == ["p5", "p3"]
    assert reached(index, 6, EU) == reached(index, 1, US) == reached(index, 1, EU_OF_ANOTHER_SPEC) == []


def test_equality_deletes_reach_strictly_older_data() -> None:
    index = index_of((entry(EQUALITY_DELETES, "e5", 5, ids=(1,)), EU))
    assert reached(index, 4, EU) == ["e5"]
    assert reached(index, 5, EU) == reached(index, 1, US) == reached(index, 1, EU_OF_ANOTHER_SPEC) == []


def test_equality_deletes_of_an_unpartitioned_spec_reach_every_spec() -> None:
    index = index_of((entry(EQUALITY_DELETES, "e", 5, ids=(1,)), EVERYWHERE))
    assert reached(index, 4, EU) == reached(index, 4, EU_OF_ANOTHER_SPEC) == reached(index, 4, EVERYWHERE) == ["e"]


def test_a_null_tuple_is_a_partition_and_not_the_whole_table() -> None:
    index = index_of((entry(EQUALITY_DELETES, "e", 5, ids=(1,)), PartitionKey(1, (None,))))
    assert reached(index, 1, PartitionKey(1, (None,))) == ["e"]
    assert reached(index, 1, EU) == []


def test_a_position_delete_that_names_its_file_reaches_no_other() -> None:
    index = index_of((entry(POSITION_DELETES, "p", 5, file="d"), EU))
    assert reached(index, 4, EU) == ["p"]
    assert reached(index, 4, EU, path="other") == []
    assert index.deleted_rows(entry(DATA, "d", 4, rows=1), (0,)) == 1


def test_a_deletion_vector_stands_for_all_position_deletes_of_its_file() -> None:
    index = index_of(
        (entry(POSITION_DELETES, "p", 5), EU),
        (entry(POSITION_DELETES, "v", 6, file="d", vector=4), EU),
        (entry(EQUALITY_DELETES, "e", 6, ids=(1,)), EU),
    )
    assert reached(index, 4, EU) == ["v", "e"]
    assert reached(index, 4, EU, path="other") == ["p", "e"]


def test_bounds_keep_equality_deletes_away_from_files_they_cannot_touch() -> None:
    def ids(low: int, high: int, nulls: int = 0) -> ColumnCounts:
        return ColumnCounts({1: 9}, {1: nulls}, {}, {1: low.to_bytes(8, "little")}, {1: high.to_bytes(8, "little")})

    index = index_of((entry(EQUALITY_DELETES, "e", 5, ids=(1,), counts=ids(10, 20, nulls=1)), EU))
    assert reached(index, 4, EU, counts=ids(20, 30)) == ["e"]
    assert reached(index, 4, EU, counts=ids(21, 30)) == []
    assert reached(index, 4, EU, counts=ids(21, 30, nulls=1)) == ["e"]
    assert index.equality_columns == {1}
