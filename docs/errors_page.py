"""The page about errors, from `relayout.errors`."""

from __future__ import annotations

import inspect

from docs.markdown import code, table
from relayout import errors

INTRODUCTION = """# Errors

Every expected failure is a `RelayoutError`. It says **what** happened, **where**, and what to do **next**; the command
line prints these three lines to stderr and exits with 2. With `--json` stdout holds
`{"schema": 1, "error": …, "what": …, "where": …, "next": …, "retry": …}` too. `--debug` adds the traceback.

`retry` is for schedulers: `safe` = the same call may be made again, `replan` = plan again, then apply, `never` =
something must be changed first.

What to do about each is in [operate](../operate.md), by what you see.
"""

EXITS = """## Exit codes

| code | meaning |
| --- | --- |
| 0 | done, or there was nothing to do; warnings included |
| 1 | findings, work shown by `plan` or a dry run, or some batches failed |
| 2 | an error from the list above, or a wrong command line |
| 130 | interrupted |
"""


def errors_page() -> str:
    rows = [
        (code(name), _first_line(kind), code(kind.retry.value), ", ".join(code(base) for base in _python_bases(kind)))
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.RelayoutError)
    ]
    return "\n".join([INTRODUCTION, table(("error", "meaning", "retry", "also caught as"), rows), EXITS])


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").splitlines()[0]


def _python_bases(kind: type) -> list[str]:
    return [
        base.__name__
        for base in kind.__mro__
        if base.__module__ == "builtins" and base in (ValueError, FileNotFoundError)
    ]
