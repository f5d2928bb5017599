"""How the alternates of a table are, told by metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from relayout.alternates.freshness import standing
from relayout.alternates.linter import worthwhile
from relayout.alternates.registry import Found, described
from relayout.config.model import Table
from relayout.jobs.alternates.shelf import registry_for
from relayout.table.alternates import Account
from relayout.table.facts import TableFacts
from relayout.table.layouts import layout_of
from relayout.table.routing_counts import RoutingCounts
from relayout.upkeep.alternate_status import AlternatesStatus, AlternateStatus, Freshness

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable


def alternates_status(
    declared: Table | None,
    facts: TableFacts,
    native: NativeTable,
    found: Iterable[Found],
    uses: Mapping[str, RoutingCounts],
) -> AlternatesStatus:
    """Declared alternates that are built, then those that no declaration asks for; `uses` is by table."""
    own = [one for one in found if one.is_of(facts)]
    if not own:
        return AlternatesStatus()
    wanted = worthwhile(declared.alternates, layout_of(declared)) if declared else []
    registry = registry_for(wanted, own, facts, native)
    matched = [match for _, match in registry.matched if match]
    size = int(facts.ancestry[0].summary.get("total-files-size", "0")) if facts.ancestry else 0
    told = [_told(one, facts, size, uses, declared=True) for one in matched]
    told += [_told(one, facts, size, uses, declared=False) for one in registry.others]
    total = size + sum(one.size_bytes for one in told)
    return AlternatesStatus(tuple(told), round(total / size, 2) if size else None)


def _told(
    found: Found, base: TableFacts, size: int, uses: Mapping[str, RoutingCounts], *, declared: bool
) -> AlternateStatus:
    account = standing(found.facts.ancestry, base.ancestry) if base.ancestry else Account(0)
    files = found.facts.ancestry[0].summary.get("total-data-files", "0") if found.facts.ancestry else "0"
    return AlternateStatus(
        name=found.name,
        table=found.table,
        layout=described(found.declaration),
        declared=declared,
        freshness=_freshness(account),
        rows=found.rows,
        files=int(files),
        size_bytes=found.size_bytes,
        amplification=round(found.size_bytes / size, 2) if size else None,
        batches=account.batches,
        only_these=account.only,
        use=uses.get(found.table),
    )


def _freshness(account: Account) -> Freshness:
    if account.whole:
        return Freshness.FRESH
    return Freshness.STALE if account.empty else Freshness.PARTLY
