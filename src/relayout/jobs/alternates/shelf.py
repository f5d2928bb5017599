"""The alternates that are there, read through PyIceberg once for all bases of a namespace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from relayout.alternates.registry import Found, Registry, registry_of
from relayout.config import Config
from relayout.config.model import ALTERNATE_PREFIX, Alternate
from relayout.errors import RelayoutError, Retry
from relayout.read.catalog import CatalogReader
from relayout.read.tables import facts_of, fields_by_name
from relayout.table.facts import TableFacts
from relayout.table.names import TableName

if TYPE_CHECKING:
    from pyiceberg.table import Table as NativeTable


def alternates_in(reader: CatalogReader, config: Config) -> tuple[Found, ...]:
    """Every alternate of the configured namespace, whatever its base is; a damaged one counts as not there."""
    home = tuple(config.namespace.split("."))
    found = []
    for table in reader.table_names(config.namespace):
        if table.startswith(ALTERNATE_PREFIX):
            native = _loaded(reader, TableName(home, table))
            if native is not None:
                found.append(Found(facts_of(native, TableName(home, table))))
    return tuple(one for one in found if one.facts.is_managed)


def _loaded(reader: CatalogReader, name: TableName) -> NativeTable | None:
    try:
        return reader.load(name)
    except RelayoutError as error:
        # A catalog that does not answer must not make us build everything again.
        if error.retry is Retry.SAFE:
            raise
        return None


def registry_for(
    declared: Sequence[Alternate], found: Iterable[Found], base: TableFacts, native: NativeTable
) -> Registry:
    """Which alternate of this base is which; one that lacks a column whose old rows are not null is no match."""
    fields = fields_by_name(native)
    defaults = {field.name for field in native.schema().fields if getattr(field, "initial_default", None) is not None}
    fitting = [one for one in found if defaults <= one.base_fields.keys()]
    registry = registry_of(declared, fitting, base, fields)
    unfit = tuple(one for one in found if one not in fitting and one.is_of(base))
    return Registry(registry.matched, registry.others + unfit)
