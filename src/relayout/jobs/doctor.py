"""`relayout doctor`: look at everything a run needs, say what is there, and how to get what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from relayout.config import Config, from_mapping, load
from relayout.config.load import FILE_NAME
from relayout.errors import ConfigError, MissingError, RelayoutError
from relayout.jobs.checks.engine import Start, jars_in_place, java_in_use, spark_home, spark_round_trip
from relayout.jobs.checks.installed import packages_in_use, python_in_use
from relayout.jobs.checks.lake import (
    CatalogAnswer,
    ask_catalog,
    catalog_findings,
    configuration,
    source_findings,
    storage_round_trip,
    without_secrets,
)
from relayout.jobs.checks.machine import disk_findings, network, open_files
from relayout.jobs.checks.memory import memory_finding, this_machine
from relayout.spark.session import start_session
from relayout.upkeep.findings import Diagnosis, Finding, State

Check = Callable[[], Finding | Iterable[Finding]]


def examine(
    config: Config | None = None, problem: ConfigError | MissingError | None = None, start: Start = start_session
) -> Diagnosis:
    """Check everything; without a configuration the defaults are judged, with a broken one its problems are told.

    Nothing is left behind but what every run leaves: jars in the cache, and the session that `start` gave.
    """
    return _Examination(config, start).run(problem)


def examine_file(file: str) -> Diagnosis:
    """The same by a configuration's name; that the usual one is not there is no problem."""
    try:
        return examine(load(file))
    except MissingError as problem:
        return examine(problem=None if file == FILE_NAME else problem)
    except ConfigError as problem:
        return examine(problem=problem)


class _Examination:
    """The findings so far, and what later checks need to know of earlier ones."""

    def __init__(self, config: Config | None, start: Start) -> None:
        self._config = config
        self._judged = config or from_mapping({"tables": {}})
        self._start = start
        self._findings: list[Finding] = []
        self._catalog: CatalogAnswer | None = None

    def run(self, problem: ConfigError | MissingError | None) -> Diagnosis:
        config, judged = self._config, self._judged
        declared = config is not None
        self._look("python", python_in_use)
        self._look("packages", packages_in_use)
        self._look("configuration", lambda: configuration(config, problem))
        self._look("Java", java_in_use)
        self._look("SPARK_HOME", spark_home)
        self._look("jars", lambda: jars_in_place(judged))
        self._look("memory", lambda: memory_finding(judged.spark, this_machine(), declared=declared))
        self._look("disk", lambda: disk_findings(judged, declared=declared))
        self._look("open files", open_files)
        self._look("network", lambda: network(judged))
        if config is not None:
            self._look("catalog", lambda: self._asked_catalog(config))
            self._look("storage", lambda: storage_round_trip(config))
            self._look("sources", lambda: source_findings(config))
        self._look("Spark", self._spark)
        return Diagnosis(tuple(self._presentable(finding) for finding in self._findings))

    def _look(self, name: str, check: Check) -> None:
        """Keep what the check finds; a check that fails is a finding too."""
        try:
            found = check()
            self._findings += [found] if isinstance(found, Finding) else found
        except RelayoutError as error:
            self._findings.append(Finding.from_error(name, error))
        except OSError as error:
            what = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
            self._findings.append(Finding(name, State.PROBLEM, what, "see that this user may read and write there"))
        except Exception as error:  # noqa: BLE001
            # The one command that must work where nothing else does.
            what = f"could not be checked: {type(error).__name__}: {error}"
            self._findings.append(Finding(name, State.PROBLEM, what, "report this, it should have been foreseen"))

    def _presentable(self, finding: Finding) -> Finding:
        """Whatever a driver or Spark said, a diagnosis can be shown to others."""
        return replace(finding, what=without_secrets(finding.what, self._judged))

    def _asked_catalog(self, config: Config) -> list[Finding]:
        answer = ask_catalog(config)
        if isinstance(answer, Finding):
            return [answer]
        self._catalog = answer
        return list(catalog_findings(config, answer))

    def _spark(self) -> list[Finding]:
        """Spark on the lake where that is there and answers, otherwise on its own; not where it cannot start."""
        first = self._failed("packages", "Java", "SPARK_HOME", "jars", "network")
        if first:
            what = f"not tried, because of what was found for {' and '.join(first)}"
            return [Finding("Spark", State.WARNING, what)]
        answers = self._catalog is not None and self._catalog.made and not self._failed("catalog", "storage")
        return spark_round_trip(self._judged, self._start, on_lake=answers)

    def _failed(self, *checks: str) -> list[str]:
        failed = {finding.check for finding in self._findings if finding.state is State.PROBLEM}
        return [check for check in checks if check in failed]
