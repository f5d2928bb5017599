"""Errors as the command line shows them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relayout.errors import ConfigError, ConfigProblem, MissingError, PlanStale, RelayoutError
from relayout.report.error_text import error_json, error_text

PROBLEMS = (
    ConfigProblem("relayout.yaml", 7, "tables.income.pattern", "unknown key", "did you mean `source`?"),
    ConfigProblem("relayout.yaml", 0, "tables.in\ncome", "is \x1b[31mred"),
)


def test_three_labelled_lines_and_several_where_there_are_several(golden: Callable[[str, str], None]) -> None:
    errors = [
        MissingError("table 'incom' is not declared", where="relayout.yaml", next="declared tables: income"),
        PlanStale("the world moved", next="make a new plan with `relayout plan -o plan.json`"),
        RelayoutError("two files are in the way", where="a.json\n       b\x07.json\n         c.json"),
        RelayoutError("a bare one"),
        ConfigError(PROBLEMS),
    ]
    golden("error_text.txt", "\n\n".join(error_text(error) for error in errors))


@pytest.mark.parametrize(
    "error",
    [
        MissingError("what", where="where\n       and there", next="next"),
        RelayoutError("alone"),
        ConfigError(PROBLEMS[:1]),
    ],
)
def test_harmless_text_is_shown_as_the_error_says_it(error: RelayoutError) -> None:
    assert error_text(error) == str(error)


def test_the_document_of_an_error_says_the_same() -> None:
    stale = PlanStale("moved", where="plan 7f3c", next="plan again")
    assert error_json(stale) == {
        "schema": 1,
        "kind": "error",
        "error": "PlanStale",
        "what": "moved",
        "where": "plan 7f3c",
        "next": "plan again",
        "retry": "replan",
    }


def test_the_document_of_a_configuration_error_lists_every_problem() -> None:
    document = error_json(ConfigError(PROBLEMS))
    assert document["what"] == "2 problems in the configuration"
    assert document["problems"] == [
        {
            "file": "relayout.yaml",
            "line": 7,
            "key": "tables.income.pattern",
            "what": "unknown key",
            "next": "did you mean `source`?",
        },
        {"file": "relayout.yaml", "line": 0, "key": "tables.in\ncome", "what": "is \x1b[31mred", "next": ""},
    ]
