"""Documents for other programs: valid whatever they hold."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from relayout.ingest.plan import Reason
from relayout.report.json_text import json_line, json_text

# Two halves that follow each other are one character to every JSON parser, so they are left out.
PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
texts = st.text(st.characters(exclude_categories=[]), max_size=8).filter(lambda text: not PAIR.search(text))
documents = st.dictionaries(
    texts,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(documents)
def test_any_document_can_be_encoded_and_parsed_back(document: dict[str, Any]) -> None:
    for text in (json_text(document), json_line(document)):
        assert json.loads(text.encode("utf-8")) == document
        assert list(json.loads(text)) == list(document)


@given(documents)
def test_no_document_acts_on_a_terminal(document: dict[str, Any]) -> None:
    acting = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
    assert acting & set(json_text(document)) <= {"\n"}
    assert acting & set(json_line(document)) == set()


def test_a_document_is_indented_in_its_own_order_and_ends_its_line() -> None:
    assert json_text({"b": 1, "a": {"größe": ["x", None]}}) == (
        '{\n  "b": 1,\n  "a": {\n    "größe": [\n      "x",\n      null\n    ]\n  }\n}\n'
    )


def test_numbers_that_json_has_not_become_texts() -> None:
    values = [float("nan"), float("inf"), float("-inf"), Decimal("1.10")]
    assert json_line(values) == '["NaN", "Infinity", "-Infinity", "1.10"]'


def test_a_name_that_is_not_utf8_keeps_its_bytes_as_an_escape() -> None:
    assert json_line("a\udcff.json") == '"a\\udcff.json"'


def test_frozen_mappings_tuples_and_enums_are_plain() -> None:
    assert json_line(MappingProxyType({"reason": Reason.NEW, "changes": ("a", "b")})) == (
        '{"reason": "new", "changes": ["a", "b"]}'
    )
