"""Stamps and ledger lines come back as they were written; fingerprints tell sources apart by what a listing shows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.commit.ledger_table import _arrow_table
from relayout.ledger.records import (
    BASE_LAYOUT,
    LEDGER_SCHEMA,
    BatchRecord,
    BatchStamp,
    SourceStamp,
    State,
    fingerprint_of,
    stamp_summary,
    stamps_in,
)
from relayout.table.batches import BatchKey
from relayout.table.sources import SourceFile

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
LONGS = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**63 - 1)
VALUES = st.none() | st.booleans() | LONGS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
KEYS = st.dictionaries(TEXTS.filter(bool), VALUES, max_size=3).map(lambda items: BatchKey(tuple(items.items())))
STAMPS = st.builds(BatchStamp, KEYS, TEXTS, TEXTS, COUNTS, COUNTS, COUNTS, st.booleans())
SOURCES = st.builds(SourceStamp, TEXTS, COUNTS, LONGS, LONGS, TEXTS, TEXTS)
RECORDS = st.builds(
    BatchRecord,
    table_name=TEXTS,
    layout=TEXTS,
    batch=KEYS,
    state=st.sampled_from(State),
    fingerprint=TEXTS,
    schema_hash=TEXTS,
    snapshot_id=st.none() | LONGS,
    previous_stamp=st.none() | LONGS,
    sequence_number=COUNTS,
    plan_id=TEXTS,
    run_id=TEXTS,
    rows=COUNTS,
    files=COUNTS,
    size_bytes=COUNTS,
    seconds=st.floats(0, 1e9),
    error=TEXTS,
    recorded_at_ms=COUNTS,
    incremental_keys=st.lists(KEYS, max_size=2).map(tuple),
    sources=st.none() | st.lists(SOURCES, max_size=2).map(tuple),
    left_files=st.lists(TEXTS, max_size=2).map(tuple),
)

FILE = SourceFile("in/a_2020.json", 10, 20, 30, "etag")


@given(st.lists(STAMPS, max_size=3), st.none() | LONGS)
def test_stamps_come_back_from_a_summary_as_they_went_in(stamps: list[BatchStamp], previous: int | None) -> None:
    summary = stamp_summary("plan", "run", BASE_LAYOUT, stamps, previous)
    assert all(isinstance(value, str) for value in summary.values())
    assert stamps_in(summary, BASE_LAYOUT) == tuple(stamps)
    assert stamps_in(summary, "by_fips") == ()


def test_a_summary_without_stamps_accounts_for_no_batch() -> None:
    assert stamps_in({}, BASE_LAYOUT) == ()
    assert stamps_in({"relayout.layout": BASE_LAYOUT}, BASE_LAYOUT) == ()


def test_a_stamp_reads_like_this_in_a_snapshots_summary() -> None:
    stamps = [BatchStamp(BatchKey((("year", 2020),)), "5d1c", "0f-1a", 96, 1, 4058)]
    assert stamp_summary("2afb", "3f0d", BASE_LAYOUT, stamps, 41) == {
        "relayout.plan-id": "2afb",
        "relayout.run-id": "3f0d",
        "relayout.layout": "base",
        "relayout.batches": (
            '[{"batch":{"year":2020},"fingerprint":"5d1c","schema-hash":"0f-1a","rows":96,"files":1,"bytes":4058}]'
        ),
        "relayout.previous-stamp": "41",
    }
    removal = json.loads(
        stamp_summary("", "", BASE_LAYOUT, [replace(stamps[0], removed=True)], None)["relayout.batches"]
    )
    assert removal[0]["removed"] is True


@given(RECORDS)
def test_ledger_lines_come_back_from_the_ledger_as_they_went_in(record: BatchRecord) -> None:
    assert BatchRecord.from_row(_arrow_table([record]).to_pylist()[0]) == record


@given(RECORDS)
def test_a_line_read_without_its_lists_knows_no_sources(record: BatchRecord) -> None:
    row = {name: value for name, value in record.to_row().items() if name not in ("sources", "left_files")}
    assert BatchRecord.from_row(row) == replace(record, sources=None, left_files=())


def test_the_ledger_table_has_the_columns_of_a_line_in_their_order() -> None:
    plain = LEDGER_SCHEMA.partition("sources array<struct<")[0]
    declared = [column.split()[0] for column in plain.split(", ") if column] + ["sources", "left_files"]
    assert declared == _arrow_table([]).column_names


@given(st.permutations([replace(FILE, path=f"in/{number}.json") for number in range(4)]))
def test_the_order_of_a_listing_does_not_change_a_fingerprint(files: list[SourceFile]) -> None:
    assert fingerprint_of(files) == fingerprint_of(sorted(files, key=lambda file: file.path))


@pytest.mark.parametrize(
    "other",
    [
        replace(FILE, path="in/b_2020.json"),
        replace(FILE, size_bytes=11),
        replace(FILE, modified_ns=21),
        replace(FILE, changed_ns=31),
        replace(FILE, etag="other"),
    ],
)
def test_a_fingerprint_changes_with_everything_a_listing_shows(other: SourceFile) -> None:
    assert len({fingerprint_of([FILE]), fingerprint_of([other]), fingerprint_of([FILE, other])}) == 3


def test_path_values_do_not_change_a_fingerprint() -> None:
    assert fingerprint_of([replace(FILE, path_values=(("year", "2020"),))]) == fingerprint_of([FILE])


def test_a_file_name_that_is_not_unicode_has_a_fingerprint() -> None:
    assert len(fingerprint_of([replace(FILE, path="in/\udcff.json")])) == 32
