"""What a summary leaves open of deletes by key counts as one, because a migration must never miss it."""

from __future__ import annotations

import pytest

from relayout.commit.rewrites import may_delete_by_key


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ({}, True),
        ({"total-delete-files": "0"}, False),
        ({"total-delete-files": "7", "added-data-files": "2"}, False),
        ({"total-delete-files": "1", "added-delete-files": "1", "added-equality-delete-files": "1"}, True),
        ({"total-delete-files": "1", "added-delete-files": "1", "added-position-delete-files": "1"}, False),
        ({"total-delete-files": "2", "added-delete-files": "2", "added-dvs": "2"}, False),
        ({"total-delete-files": "2", "added-delete-files": "2", "added-dvs": "1"}, True),
        ({"total-delete-files": "2", "added-delete-files": "2"}, True),
    ],
)
def test_a_snapshot_may_delete_by_key_unless_its_summary_rules_it_out(summary: dict[str, str], expected: bool) -> None:
    assert may_delete_by_key(summary.get) is expected
