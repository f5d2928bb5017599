"""Which of the alternates that are there is which of those that are declared; a name is a description, never a key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relayout.config.model import ALTERNATE_PREFIX, Alternate
from relayout.table.alternates import ALTERNATE_DECLARATION, ALTERNATE_NAME, ALTERNATE_OF, BASE_FIELDS
from relayout.table.facts import TableFacts
from relayout.table.layouts import SortField, layout_of


def declaration_of(alternate: Alternate) -> str:
    """The declared layout as canonical JSON; two declarations that say the same are the same text."""
    layout = layout_of(alternate)
    told = {
        "partition": [[field.column, field.transform] for field in layout.partition],
        "sort": [str(field) for field in layout.sort],
        "cluster": {"curve": alternate.cluster.curve, "by": list(alternate.cluster.by)} if alternate.cluster else None,
    }
    return json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def described(declaration: str) -> str:
    """A declaration as `describe` would put it: `bucket[16](geo_fips), sorted by geo_fips`."""
    told = json.loads(declaration)
    levels = [column if how == "identity" else f"{how}({column})" for column, how in told["partition"]]
    text = " / ".join(levels) or "unpartitioned"
    if told["sort"]:
        text += ", sorted by " + ", ".join(str(SortField.parse(field)) for field in told["sort"])
    if told["cluster"]:
        text += f", clustered along {told['cluster']['curve']}({', '.join(told['cluster']['by'])})"
    return text


def curve_of(declaration: str) -> tuple[str, tuple[str, ...]] | None:
    """The kind of curve and its columns, if rows are clustered."""
    told = json.loads(declaration)["cluster"]
    return (told["curve"], tuple(told["by"])) if told else None


@dataclass(frozen=True, slots=True)
class Found:
    """An alternate's table as it is."""

    facts: TableFacts

    @property
    def table(self) -> str:
        return self.facts.name.table

    @property
    def name(self) -> str:
        return self.facts.properties.get(ALTERNATE_NAME, "")

    @property
    def declaration(self) -> str:
        return self.facts.properties.get(ALTERNATE_DECLARATION, "")

    @property
    def base_uuid(self) -> str:
        return self.facts.properties.get(ALTERNATE_OF, "")

    @property
    def base_fields(self) -> Mapping[str, int]:
        told: Mapping[str, int] = json.loads(self.facts.properties.get(BASE_FIELDS, "{}"))
        return told

    @property
    def size_bytes(self) -> int:
        return _total(self.facts, "total-files-size")

    @property
    def rows(self) -> int:
        return _total(self.facts, "total-records") - _total(self.facts, "total-position-deletes")

    def is_of(self, base: TableFacts) -> bool:
        ours = self.table.startswith(ALTERNATE_PREFIX) and self.facts.is_managed
        return ours and self.base_uuid == base.uuid

    def still_means(self, fields: Mapping[str, int]) -> bool:
        """Whether every column is still the column of the base that it was filled from."""
        return all(fields.get(name) == field_id for name, field_id in self.base_fields.items())


def _total(facts: TableFacts, name: str) -> int:
    return int(facts.ancestry[0].summary.get(name, "0")) if facts.ancestry else 0


@dataclass(frozen=True, slots=True)
class Registry:
    """The alternates of one base: declared ones with their tables, and tables that no declaration asks for any more."""

    matched: tuple[tuple[Alternate, Found | None], ...]
    others: tuple[Found, ...]

    def successor_of(self, found: Found) -> tuple[Alternate, Found | None] | None:
        """The declared alternate that has this one's name."""
        return next((pair for pair in self.matched if pair[0].name == found.name), None)


def registry_of(
    declared: Sequence[Alternate], found: Iterable[Found], base: TableFacts, fields: Mapping[str, int]
) -> Registry:
    """Match by layout; of two tables with one layout, which two runs at once may make, the fuller one counts."""
    own = sorted((one for one in found if one.is_of(base)), key=lambda one: (-len(one.facts.ancestry), one.table))
    matched: list[tuple[Alternate, Found | None]] = []
    taken: set[str] = set()
    for alternate in declared:
        wanted = declaration_of(alternate)
        fitting = (one for one in own if one.declaration == wanted and one.still_means(fields))
        choice = next((one for one in fitting if one.table not in taken), None)
        if choice:
            taken.add(choice.table)
        matched.append((alternate, choice))
    return Registry(tuple(matched), tuple(one for one in own if one.table not in taken))
