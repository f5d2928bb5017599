"""Whether an alternate can pay at all, and which predicates it will speed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relayout.config.model import Alternate
from relayout.table.layouts import Layout, PartitionField, layout_of, transform_result_type

BUCKETS = 16


def refusal(alternate: Alternate, base: Layout) -> str:
    """Why this alternate would save no file, or nothing.

    Iceberg prunes by partition values and not by folders: the same fields in another order are the same partitions.
    """
    layout = layout_of(alternate)
    if _levels(layout) != _levels(base) or alternate.cluster or layout.sort not in ((), base.sort):
        return ""
    if layout.partition == base.partition or not layout.partition:
        return "it is the layout of the table itself"
    return "it only reorders the partition keys of the table, and the order of partition keys saves no file"


def worthwhile(alternates: Sequence[Alternate], base: Layout) -> list[Alternate]:
    """Those that are not refused."""
    return [alternate for alternate in alternates if not refusal(alternate, base)]


def _levels(layout: Layout) -> set[tuple[str, str]]:
    return {(field.column, field.transform) for field in layout.partition}


def replacement(alternate: Alternate, base: Layout, types: Mapping[str, str]) -> str:
    """YAML for an alternate that does what a pure reordering was meant for: its first key first."""
    columns = list(dict.fromkeys(field.column for field in layout_of(alternate).partition))
    columns = columns or [field.column for field in base.partition]
    if not columns:
        return ""
    first = columns[0]
    key = next(iter(_partition_for(first, types)), None)
    lines = [f"- name: {_yaml(alternate.name)}"]
    if key is not None:
        lines.append(f"  partition: {{keys: [{{name: {_yaml(first)}, transform: {_yaml(key)}}}]}}")
    lines.append(f"  sort: [{', '.join(_yaml(column) for column in columns)}]")
    return "\n".join(lines)


def _partition_for(column: str, types: Mapping[str, str]) -> list[str]:
    """The first transform of few values that the column's type takes."""
    found = []
    for transform in (f"bucket[{BUCKETS}]", "month"):
        try:
            transform_result_type(transform, types.get(column, "string"))
        except ValueError:
            continue
        found.append(transform)
    return found


def _yaml(text: str) -> str:
    return text if text.isidentifier() else "'" + text.replace("'", "''") + "'"


def helped_predicates(alternate: Alternate, base: Layout) -> tuple[str, ...]:
    """Predicates for which this layout leaves files out that the base has to read, in words."""
    layout = layout_of(alternate)
    known = {(field.column, field.transform) for field in base.partition}
    found: dict[str, None] = {}
    for field in layout.partition:
        if (field.column, field.transform) not in known:
            found |= dict.fromkeys(_texts(field))
    ordered = [field.column for field in layout.sort[:1]] if layout.sort != base.sort else []
    for column in alternate.cluster.by if alternate.cluster else ordered:
        if (column, "identity") not in known:
            found |= dict.fromkeys((f"{column} = …", f"{column} BETWEEN … AND …"))
    return tuple(found)


def _texts(field: PartitionField) -> tuple[str, ...]:
    name = field.transform.partition("[")[0]
    match name:
        case "identity":
            return f"{field.column} = …", f"{field.column} BETWEEN … AND …"
        case "bucket":
            return f"{field.column} = …", f"{field.column} IN (…)"
        case "truncate":
            return f"{field.column} = …", f"{field.column} BETWEEN … AND …", f"{field.column} LIKE '…%'"
        case "void":
            return ()
        case _:
            return (f"{field.column} BETWEEN … AND …",)
