"""`reference/cli.md`: every command with its options, as `--help` prints it."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from relayout.cli import app

WIDTH = 100

HEAD = """\
# Commands

`relayout [-c relayout.yaml] VERB … [--json]`. `--json` may stand before or after the verb. Results go to stdout,
everything that is said on the way to stderr. Exit codes: 0 done or nothing to do, 1 findings or pending work or some
batches failed, 2 error, 130 interrupted.
"""


def cli_page() -> str:
    """The page."""
    return HEAD + "".join(f"\n## {title}\n\n```\n{text.strip()}\n```\n" for title, text in help_texts())


def help_texts() -> Iterator[tuple[str, str]]:
    """The command's name and its help, for the command itself and each verb."""
    command = typer.main.get_command(app)
    with command.make_context("relayout", [], resilient_parsing=True, terminal_width=WIDTH) as context:
        yield "relayout", command.get_help(context)
        for name, verb in command.commands.items():  # type: ignore[attr-defined]
            with verb.make_context(name, [], parent=context, resilient_parsing=True, terminal_width=WIDTH) as inner:
                yield f"relayout {name}", verb.get_help(inner)
