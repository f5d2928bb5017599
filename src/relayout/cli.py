"""The command line: argv → api → exit code.

0: done, or nothing to do. 1: findings, pending work, or some batches failed. 2: an error. 130: interrupted.
Results go to stdout, everything that is said on the way goes to stderr.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.exceptions import TyperException

from relayout import __version__
from relayout.errors import NotRouted, RelayoutError, UsageError

if TYPE_CHECKING:
    from relayout.api import Lake
    from relayout.commit.receipts import Receipt
    from relayout.ingest.plan import IngestPlan
    from relayout.jobs.progress import Listener

DONE, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="relayout",
    help="Keep Iceberg tables laid out for how they are read: declare tables, look at the plan, apply it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done or nothing to do, 1 findings or pending work, 2 error, 130 interrupted.",
)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Tables = Annotated[list[str] | None, typer.Argument(metavar="TABLE", help="Declared tables; all without it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before rows or tables go.")]


class RowFormat(StrEnum):
    """How `sql` prints rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class RewriteMode(StrEnum):
    """What `compact` does with files of older partition specs."""

    KEEP_SPEC = "keep-spec"
    MIGRATE = "migrate"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for before the verb."""

    config: str
    as_json: bool

    def lake(self) -> Lake:
        from relayout.api import open as open_lake

        return open_lake(self.config)


def main() -> int:
    """Run the command line of this process and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is shown as an escape and does not end the run.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = int(app(_general_first(sys.argv[1:]), prog_name="relayout", standalone_mode=False) or DONE)
        sys.stdout.flush()
    except TyperException as error:
        error.show()  # type: ignore[attr-defined]  # every error that parsing raises has it
        return ERROR
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has seen enough; typer turns that into an exit of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except NotRouted as error:
        _told(error)
        return FINDINGS
    except RelayoutError as error:
        return _told(error)
    except Exception as error:  # noqa: BLE001
        # What nobody foresaw is still said in one place and form; --debug shows where it came from.
        return _told(_unforeseen(error), error)
    if code == INTERRUPTED:
        sys.stderr.write("interrupted; what was committed stays, `relayout plan` shows what is left\n")
    return code


def _general_first(arguments: Sequence[str]) -> list[str]:
    """The options that belong to every verb may stand behind it too."""
    general: list[str] = []
    rest: list[str] = []
    walk = iter(arguments)
    for argument in walk:
        if argument == "--":
            rest += [argument, *walk]
        elif argument in ("-c", "--config"):
            general += [argument, *([value] if (value := next(walk, None)) is not None else [])]
        elif argument == "--debug" or argument.startswith("--config="):
            general.append(argument)
        else:
            rest.append(argument)
    return general + rest


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _told(error: RelayoutError, cause: Exception | None = None) -> int:
    from relayout.report.error_text import error_json, error_text
    from relayout.report.json_text import json_text

    if "--debug" in sys.argv:
        import traceback

        traceback.print_exception(cause or error)
    if "--json" in sys.argv:
        _say(json_text(error_json(error)))
    sys.stderr.write(error_text(error).rstrip("\n") + "\n")
    return ERROR


def _unforeseen(error: Exception) -> RelayoutError:
    text = str(error).strip().split("\n", 1)[0]
    return RelayoutError(
        f"{type(error).__name__}: {text}" if text else type(error).__name__,
        next="run the same command with --debug, and report what it shows if it is not a setting of yours",
    )


def _say(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def _show(document: Mapping[str, Any], text: str, as_json: bool) -> None:
    from relayout.report.json_text import json_text

    _say(json_text(document) if as_json else text)


def _version(asked: bool) -> None:
    if asked:
        _say(f"relayout {__version__}")
        raise typer.Exit


@app.callback()
def asked_first(
    context: typer.Context,
    config: Annotated[
        str, typer.Option("-c", "--config", metavar="FILE", help="The configuration, or the folder it lies in.")
    ] = "relayout.yaml",
    as_json: AsJson = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,  # noqa: ARG001
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before the verb."""
    context.obj = Asked(config, as_json)


@app.command()
def init(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write.")] = Path("."),
    as_json: AsJson = False,
) -> None:
    """Write a relayout.yaml and small sample sources. They are ready to apply."""
    from relayout.jobs.init import init as write_sample

    written = write_sample(directory)
    text = f"wrote {directory / 'relayout.yaml'} and {len(written) - 1} sample files\n"
    here = "" if directory == Path(".") else f"cd {directory} && "
    text += f"next: {here}relayout plan"
    document = {"schema": 1, "kind": "init", "written": [str(path) for path in written]}
    _show(document, text, context.obj.as_json or as_json)


@app.command()
def demo(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is not there yet.")] = Path(
        "relayout-demo"
    ),
) -> None:
    """Show the whole story on generated data, in about a minute."""
    from relayout.api import open as open_lake
    from relayout.jobs.demo import demo as tell

    tell(directory, _say, open_lake)


@app.command()
def doctor(context: typer.Context, as_json: AsJson = False) -> int:
    """Check Java, jars, catalog, storage and memory. Each finding comes with its fix."""
    from relayout.jobs.doctor import examine_file
    from relayout.report.doctor_text import doctor_text

    diagnosis = examine_file(context.obj.config)
    _show(diagnosis.to_json(), doctor_text(diagnosis), context.obj.as_json or as_json)
    return DONE if diagnosis.healthy else FINDINGS


@app.command()
def plan(
    context: typer.Context,
    tables: Tables = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write the plan for `apply --plan`.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show what apply would do and why; nothing is written. Exits with 1 when work is pending."""
    from relayout.jobs.stored_plans import write_plan
    from relayout.report.json_text import json_text
    from relayout.report.plan_text import plan_text

    planned = context.obj.lake().plan(tables or ())
    document = planned.to_json()
    if output is not None:
        write_plan(output, json_text(document))
    _show(document, plan_text(planned), context.obj.as_json or as_json)
    if any(table.problem for table in planned.tables):
        return ERROR
    return FINDINGS if planned.has_work or any(table.bad_files for table in planned.tables) else DONE


@app.command()
def apply(
    context: typer.Context,
    tables: Tables = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Do exactly what this plan says, or refuse.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Also take out batches without sources and tables no longer declared.")
    ] = False,
    overwrite_edits: Annotated[
        bool, typer.Option("--overwrite-edits", help="Also replace batches whose rows somebody changed.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Load what is new or changed, batch by batch."""
    from relayout.jobs.stored_plans import read_plan

    as_json = context.obj.as_json or as_json
    if plan_file is not None and tables:
        raise UsageError("a plan names its tables itself", where="--plan", next="leave the table names out")
    lake: Lake = context.obj.lake()
    stored = None if plan_file is None else read_plan(plan_file)
    if prune or overwrite_edits:
        # What is confirmed is what happens: apply refuses this plan if the world moves while somebody thinks.
        stored = stored or lake.plan(tables or ())
        _confirm_losses(stored, prune=prune, overwrite_edits=overwrite_edits, yes=yes)
    with _progress() as listener:
        receipt = lake.apply(
            stored, tables=tables or (), prune=prune, overwrite_edits=overwrite_edits, listener=listener
        )
    return _receipt(receipt, as_json)


@app.command()
def retry(context: typer.Context, tables: Tables = None, as_json: AsJson = False) -> int:
    """Load only the batches that failed last time."""
    with _progress() as listener:
        receipt = context.obj.lake().retry(tables or (), listener=listener)
    return _receipt(receipt, context.obj.as_json or as_json)


@app.command()
def status(context: typer.Context, tables: Tables = None, as_json: AsJson = False) -> None:
    """Show health, layouts and the ledger. A named table is shown with its batches."""
    from relayout.report.status_text import status_text

    found = context.obj.lake().status(tables or ())
    _show(found.to_json(), status_text(found), context.obj.as_json or as_json)


@app.command()
def sql(
    context: typer.Context,
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="A query, DML or DDL in Spark SQL.")],
    no_route: Annotated[bool, typer.Option("--no-route", help="Read the tables themselves.")] = False,
    require_route: Annotated[bool, typer.Option("--require-route", help="Exit with 1 unless routed.")] = False,
    layout: Annotated[str, typer.Option("--layout", metavar="NAME", help="Read this alternate, or `base`.")] = "",
    row_format: Annotated[RowFormat, typer.Option("--format", help="How rows are printed.")] = RowFormat.TABLE,
    as_json: AsJson = False,
) -> None:
    """Run a query, DML or DDL. Bare table names mean the configured namespace."""
    from pyspark.errors import PySparkException

    from relayout.commit.statements import refused
    from relayout.report.rows_text import rows_csv, rows_json, rows_table

    # PySpark hands moments out in this process's zone; the session counts in UTC, and so must what is printed.
    os.environ["TZ"] = "UTC"
    time.tzset()
    lake: Lake = context.obj.lake()
    with _progress() as listener:
        frame = lake.sql(statement, route=not no_route, require_route=require_route, layout=layout, listener=listener)
    write = {RowFormat.TABLE: rows_table, RowFormat.CSV: rows_csv, RowFormat.JSON: rows_json}
    chosen = RowFormat.JSON if context.obj.as_json or as_json else row_format
    try:
        # Partition by partition, so that a result larger than memory can be printed.
        for text in write[chosen](frame.columns, frame.toLocalIterator(prefetchPartitions=True)):
            sys.stdout.write(text)
    except PySparkException as error:
        raise refused(error, statement) from error
    lake.keep_routing_counts()


@app.command()
def explain(
    context: typer.Context,
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="A query in Spark SQL; it is not run.")],
    as_json: AsJson = False,
) -> None:
    """Show what each layout would read for a query."""
    from relayout.report.explain_text import explain_text

    explained = context.obj.lake().explain(statement)
    _show(explained.to_json(), explain_text(explained), context.obj.as_json or as_json)


@app.command()
def jar(
    context: typer.Context,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE")] = "relayout-spark.jar",
    as_json: AsJson = False,
) -> None:
    """Write the routing rule as a jar for servers."""
    from relayout.jobs.jar import write_jar

    written = write_jar(Path(output))
    _show(written.to_json(), written.text, context.obj.as_json or as_json)


@app.command()
def compact(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table of the lake, declared or not.")],
    where: Annotated[str | None, typer.Option("--where", metavar="EXPR", help="Only files that may match.")] = None,
    mode: Annotated[RewriteMode, typer.Option("--mode", help="Keep each file's spec, or move old ones.")] = (
        RewriteMode.KEEP_SPEC
    ),
    to_spec: Annotated[int | None, typer.Option("--to-spec", metavar="ID", help="Spec to migrate to.")] = None,
    target_mb: Annotated[int | None, typer.Option("--target-mb", min=1, help="Size of new files.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a filter that some spec cannot judge.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    as_json: AsJson = False,
) -> int:
    """Rewrite small, large and much-deleted files of a table; with --dry-run only show which and why."""
    target = None if target_mb is None else target_mb << 20
    options = {"where": where, "mode": mode.value, "output_spec_id": to_spec, "strict": strict}
    options["target_file_size_bytes"] = target
    return _rewrite(context, table, options, dry_run=dry_run, as_json=as_json)


@app.command()
def optimize(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table of the lake, declared or not.")],
    zorder: Annotated[str | None, typer.Option("--zorder", metavar="A,B", help="Along a z-order curve.")] = None,
    hilbert: Annotated[str | None, typer.Option("--hilbert", metavar="A,B", help="Along a Hilbert curve.")] = None,
    sort: Annotated[str | None, typer.Option("--sort", metavar="A,B", help="Sorted, `b desc` is understood.")] = None,
    where: Annotated[str | None, typer.Option("--where", metavar="EXPR", help="Only files that may match.")] = None,
    target_mb: Annotated[int | None, typer.Option("--target-mb", min=1, help="Size of new files.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    as_json: AsJson = False,
) -> int:
    """Lay rows out so that queries which filter by these columns skip most files."""
    from relayout.jobs.arranging import one_order

    order = one_order(zorder=zorder, hilbert=hilbert, sort=sort)
    options = {**order, "where": where, "target_file_size_bytes": None if target_mb is None else target_mb << 20}
    return _rewrite(context, table, options, dry_run=dry_run, as_json=as_json)


def _rewrite(context: typer.Context, table: str, options: Mapping[str, Any], *, dry_run: bool, as_json: bool) -> int:
    from relayout.report.compact_text import compact_plan_text
    from relayout.report.rewrite_receipt_text import rewrite_receipt_text

    lake: Lake = context.obj.lake()
    as_json = context.obj.as_json or as_json
    if dry_run:
        planned = lake.plan_compact(table, **options)
        _show(planned.to_json(), compact_plan_text(planned), as_json)
        return FINDINGS if planned.has_work else DONE
    with _progress() as listener:
        receipt = lake.compact(table, listener=listener, **options)
    _show(receipt.to_json(), rewrite_receipt_text(receipt), as_json)
    return DONE if receipt.complete else FINDINGS


@app.command()
def invalidate(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A declared table.")],
    batch: Annotated[
        list[str] | None, typer.Option("--batch", metavar="COLUMN=VALUE", help="Batches to load again; all without.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which batches.")] = False,
    as_json: AsJson = False,
) -> int:
    """Have the next apply load batches again. Their rows stay until then."""
    from relayout.report.invalidation_text import invalidation_text

    marked = context.obj.lake().invalidate(table, batch or (), dry_run=dry_run)
    _show(marked.to_json(), invalidation_text(marked.table, marked.batches, dry_run), context.obj.as_json or as_json)
    return FINDINGS if dry_run and marked.batches else DONE


@app.command()
def rollback(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Any table of the catalog.")],
    to: Annotated[int, typer.Option("--to", metavar="SNAPSHOT", help="A snapshot that the table came from.")],
    as_json: AsJson = False,
) -> int:
    """Go back to an older snapshot of a table; its alternates follow."""
    from relayout.report.rollback_text import rollback_text

    with _progress() as listener:
        done = context.obj.lake().rollback(table, to, listener=listener)
    _show(done.to_json(), rollback_text(done), context.obj.as_json or as_json)
    return DONE if done.complete else FINDINGS


@app.command()
def verify(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table of the lake, declared or not.")],
    as_json: AsJson = False,
) -> int:
    """Compare a table's metadata with its files, and its rows with those of its alternates."""
    from relayout.report.verification_text import verification_text

    found = context.obj.lake().verify(table)
    _show(found.to_json(), verification_text(found), context.obj.as_json or as_json)
    return DONE if found.clean else FINDINGS


def _confirm_losses(planned: IngestPlan, *, prune: bool, overwrite_edits: bool, yes: bool) -> None:
    """Name what will go and ask; without a terminal only `--yes` answers."""
    from relayout.report.plan_text import losses

    found = losses(planned, prune=prune, overwrite_edits=overwrite_edits)
    if not found or yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "this takes rows or tables away: " + "; ".join(found),
            where="apply",
            next="look at `relayout plan`, then say --yes",
        )
    for line in found:
        typer.echo(line, err=True)
    if not typer.confirm("Go on?", err=True):
        raise UsageError("not confirmed", where="apply", next="nothing was changed")


def _progress() -> AbstractContextManager[Listener]:
    from relayout.report.progress import progress_for

    return progress_for(sys.stderr)


def _receipt(receipt: Receipt, as_json: bool) -> int:
    from relayout.report.receipt_text import receipt_text

    _show(receipt.to_json(), receipt_text(receipt), as_json)
    if any(table.error for table in receipt.tables):
        return ERROR
    return DONE if receipt.complete else FINDINGS
