"""The compaction plan for a reader: what is rewritten and why, what stays, and how far the filter could be judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relayout.compact.plan import Arrangement, CompactPlan, FileGroup, Mode
from relayout.report.columns import aligned
from relayout.report.printable import printable
from relayout.report.sections import MARGIN, WIDTH, joined, labelled, listed
from relayout.table.quantities import count_text, size_text

_RIGHT = (0, 2, 3, 4, 5)


def compact_plan_text(plan: CompactPlan, *, most_groups: int = 20, width: int = WIDTH) -> str:
    """The plan with `most_groups` of its groups at most."""
    head = [f"Table {printable(plan.table)}: {_state(plan)}", *_settings(plan, width)]
    return joined([head, _group_lines(plan.groups, most_groups, width), _remarks(plan, width), [_ending(plan)]])


def _state(plan: CompactPlan) -> str:
    if not plan.groups:
        return "nothing to rewrite"
    return (
        f"{count_text(plan.files_before, 'file')} ({size_text(plan.input_bytes)}) in "
        f"{count_text(len(plan.groups), 'group')} become about {plan.files_after:,}"
    )


def _settings(plan: CompactPlan, width: int) -> list[str]:
    how = {
        Arrangement.BINPACK: "rows stay in their order",
        Arrangement.SORT: f"sorted by {', '.join(plan.arrange_by)}",
        Arrangement.ZORDER: f"z-order of {', '.join(plan.arrange_by)}",
        Arrangement.HILBERT: f"Hilbert curve over {', '.join(plan.arrange_by)}",
    }[plan.arrangement]
    mode = "each file keeps its partition spec"
    if plan.mode is Mode.MIGRATE:
        mode = f"files of older specs move to spec {plan.target_spec_id}"
    return [
        *labelled("where", plan.where, width),
        *labelled("mode", f"{plan.mode.value}: {mode}; {how}", width),
        *labelled("target", f"files of {size_text(plan.target_file_bytes)}", width),
    ]


def _group_lines(groups: Sequence[FileGroup], most: int, width: int) -> list[str]:
    if not groups:
        return []
    rows = [["group", "partition", "files", "size", "deletes", "after", "why"]]
    rows += [
        [
            str(group.group_id),
            printable(_partition(group)),
            f"{group.input_files:,}",
            size_text(group.input_bytes),
            f"{group.delete_files:,}",
            f"{group.expected_output_files:,}",
            printable(group.reason),
        ]
        for group in groups[:most]
    ]
    lines = [MARGIN + line for line in aligned(rows, width - len(MARGIN), _RIGHT)]
    return [*lines, f"{MARGIN}… and {len(groups) - most:,} more"] if len(groups) > most else lines


def _partition(group: FileGroup) -> str:
    spec = "specs" if group.spec_id < 0 else f"spec {group.spec_id}"
    if group.output_spec_id != group.spec_id:
        spec += f" -> {group.output_spec_id}"
    return f"{spec}: {group.label or 'unpartitioned'}"


def _remarks(plan: CompactPlan, width: int) -> list[str]:
    warnings = [warning.what + (f" ({warning.count:,})" if warning.count > 1 else "") for warning in plan.warnings]
    return [
        *labelled("forecast", _forecast(plan), width),
        *labelled("stay", ", ".join(f"{count_text(count, 'file')}: {reason}" for reason, count in plan.skipped), width),
        *labelled("filter", ", ".join(_filter(plan)), width),
        *listed("warnings", warnings, width),
    ]


def _forecast(plan: CompactPlan) -> str:
    told = plan.forecast
    if told is None:
        return ""
    most = told.partitions_after
    after = "an unknown number of partitions" if most is None else f"at most {count_text(most, 'partition')}"
    return (
        f"{count_text(told.files_before, 'file')} in {count_text(told.partitions_before, 'partition')} become about "
        f"{told.files_after:,} in {after} of spec {plan.target_spec_id}"
    )


def _filter(plan: CompactPlan) -> Iterator[str]:
    stats = plan.filter_stats
    if stats.unevaluable_specs:
        yield f"{count_text(stats.unevaluable_specs, 'spec')} could not be judged"
    if stats.eval_errors:
        yield f"{count_text(stats.eval_errors, 'partition')} could not be evaluated"
    if stats.fail_open_partitions:
        yield (
            f"{count_text(stats.fail_open_files, 'file')} of {count_text(stats.fail_open_partitions, 'partition')} "
            "included because nobody could tell"
        )


def _ending(plan: CompactPlan) -> str:
    if not plan.groups:
        return "Nothing to do"
    return f"To do: {count_text(len(plan.groups), 'group')}, {size_text(plan.input_bytes)} (plan {plan.plan_id})"
