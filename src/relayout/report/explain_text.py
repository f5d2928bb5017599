"""Which layout answers each table of a query: a line per layout with what it would read and why."""

from __future__ import annotations

from relayout.alternates.choice import MEANINGS, Code, Explanation, LayoutChoice, RelationChoice
from relayout.report.columns import aligned
from relayout.report.printable import one_line, printable
from relayout.report.sections import MARGIN, WIDTH, joined, labelled, listed
from relayout.table.quantities import count_text, size_text

_COLUMNS = ("layout", "files", "bytes", "freshness", "code")
_NUMBERS = (1, 2)
_NONE = "-"


def explain_text(explained: Explanation, *, width: int = WIDTH) -> str:
    """A block per table of the query, subqueries first; the last line says in a word whether it is routed."""
    blocks = [_relation_lines(relation, width) for relation in explained.relations]
    blocks += [labelled("failed", f"{failure}; the base serves", width) for failure in explained.failures]
    return joined([*blocks, [_verdict(explained)]])


def _verdict(explained: Explanation) -> str:
    if explained.writes:
        return "Not routed: statements that write read the base"
    if explained.routed:
        return "Routed"
    if any(relation.routed for relation in explained.relations):
        return "Routed in part"
    return "Not routed: the base serves" if explained.relations else "Not routed: the query reads no Iceberg table"


def _relation_lines(relation: RelationChoice, width: int) -> list[str]:
    rows = [_COLUMNS, *(_cells(layout) for layout in relation.layouts)]
    snapshot = _NONE if relation.snapshot_id is None else str(relation.snapshot_id)
    return [
        f"Table {printable(relation.table)}, snapshot {snapshot}, chosen in {relation.choice_ms:.1f} ms",
        *labelled("filter", one_line(relation.filter), width),
        *(MARGIN + line for line in aligned(rows, width - len(MARGIN), _NUMBERS)),
        *_serving_lines(relation, width),
        *labelled("", _reasons(relation), width),
    ]


def _cells(layout: LayoutChoice) -> tuple[str, ...]:
    return (
        printable(f"{layout.name} ({layout.layout})" if layout.name else layout.layout),
        _NONE if layout.files is None else f"{layout.files:,}",
        _NONE if layout.size_bytes is None else size_text(layout.size_bytes),
        layout.freshness,
        layout.code.value,
    )


def _serving_lines(relation: RelationChoice, width: int) -> list[str]:
    """From where which batches come, where two layouts serve together."""
    if not relation.hybrid:
        return []
    chosen = next(layout for layout in relation.layouts if layout.code is Code.CHOSEN)
    batches = [str(key) for key in chosen.batches]
    if chosen.only:
        told = f"{count_text(len(batches), 'batch', 'batches')} from the alternate, everything else from the base"
    else:
        told = f"{count_text(len(batches), 'batch', 'batches')} from the base, everything else from the alternate"
    return [*labelled("together", told, width), *listed("", batches, width)]


def _reasons(relation: RelationChoice) -> str:
    codes = dict.fromkeys(layout.code for layout in relation.layouts if layout.code is not Code.CHOSEN)
    return "; ".join(f"{code}: {MEANINGS[code]}" for code in codes)
