"""What a plan says of alternates: which are made, which are behind, which cannot pay, which nobody asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relayout.alternates.linter import helped_predicates, refusal, replacement, worthwhile
from relayout.alternates.registry import Found, declaration_of, described
from relayout.config.model import Alternate, Table
from relayout.ingest.plan import Drop
from relayout.jobs.alternates.due import due_of
from relayout.jobs.alternates.shelf import registry_for
from relayout.table.alternate_plans import AlternatePlan, Step
from relayout.table.facts import TableFacts
from relayout.table.layouts import layout_of

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable


@dataclass(frozen=True, slots=True)
class Base:
    """A declared table as far as its alternates go; `size_bytes` is what it has or is expected to have."""

    declared: Table
    facts: TableFacts | None
    native: NativeTable | None
    types: Mapping[str, str]
    size_bytes: int | None


def alternate_plans(base: Base, found: Iterable[Found]) -> tuple[AlternatePlan, ...]:
    """One entry for each declared alternate, in the order of the declaration."""
    tables: dict[str, Found | None] = {}
    layout = layout_of(base.declared)
    if base.facts is not None and base.native is not None:
        wanted = worthwhile(base.declared.alternates, layout)
        registry = registry_for(wanted, found, base.facts, base.native)
        tables = {alternate.name: match for alternate, match in registry.matched}
    return tuple(_planned(base, alternate, tables.get(alternate.name)) for alternate in base.declared.alternates)


def _planned(base: Base, alternate: Alternate, found: Found | None) -> AlternatePlan:
    layout = layout_of(base.declared)
    text = described(declaration_of(alternate))
    why = refusal(alternate, layout)
    if why:
        instead = replacement(alternate, layout, base.types)
        return AlternatePlan(alternate.name, "", text, Step.REFUSED, why, replacement=instead)
    helps = helped_predicates(alternate, layout)
    if found is None:
        reason = "is built with the table" if base.facts is None else "is new"
        size, times = base.size_bytes, None if base.size_bytes is None else 1.0
        return AlternatePlan(alternate.name, "", text, Step.CREATE, reason, (), size, times, helps)
    step, reason, stale = _state(base, found)
    times = round(found.size_bytes / base.size_bytes, 2) if base.size_bytes else None
    return AlternatePlan(alternate.name, found.table, text, step, reason, stale, found.size_bytes, times, helps)


def _state(base: Base, found: Found) -> tuple[Step, str, tuple[str, ...]]:
    if base.facts is None or base.native is None:
        return Step.NONE, "", ()
    columns = base.declared.batch_partition_columns
    due = due_of(None, "", base.native, base.facts, found, columns)
    if due is None:
        return Step.NONE, "", ()
    if due.everything:
        built = bool(found.facts.ancestry)
        return Step.REFRESH, "the table was changed otherwise than by loading" if built else "is not built yet", ()
    return Step.REFRESH, "is behind the table", tuple(str(key) for key in due.keys)


def alternate_drops(
    bases: Sequence[tuple[TableFacts, NativeTable, Table | None]], found: Sequence[Found]
) -> tuple[Drop, ...]:
    """Alternates that no declaration asks for; `bases` are all tables of the namespace, with their declarations."""
    drops: list[Drop] = []
    owned: set[str] = set()
    for facts, native, declared in bases:
        alternates = worthwhile(declared.alternates, layout_of(declared)) if declared else []
        registry = registry_for(alternates, found, facts, native)
        owned |= {one.table for one in found if one.is_of(facts)}
        for one in registry.others:
            replaced = registry.successor_of(one) is not None
            note = "serves until the new layout is complete" if replaced else "is no longer declared"
            drops.append(_drop(one, f"alternate {one.name} of {facts.name.table}, {_layout(one)}: {note}"))
    orphans = [one for one in found if one.table not in owned]
    return (*drops, *(_drop(one, f"alternate {one.name}, {_layout(one)}: its table is gone") for one in orphans))


def _drop(found: Found, text: str) -> Drop:
    return Drop(found.table, found.rows, text)


def _layout(found: Found) -> str:
    return described(found.declaration) if found.declaration else "of unknown layout"
