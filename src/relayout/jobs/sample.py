"""A look at how one pending source file will lie once it is laid out, for the plan's forecast."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from relayout.ingest.advice import Sample
from relayout.ingest.batches import Assignment
from relayout.ingest.plan import PlannedBatch
from relayout.ingest.schema import SourceSchema
from relayout.jobs.sources import Sources
from relayout.kernels.sample import lay_out_sample
from relayout.kernels.write import TargetField
from relayout.table.layouts import Layout

LARGEST_SAMPLED_BYTES = 64_000_000


def sample_of(
    sources: Sources,
    assignment: Assignment,
    runnable: Sequence[PlannedBatch],
    schema: SourceSchema,
    layout: Layout,
) -> Sample | None:
    """Sample the largest file of the middle batch that is not too large; None when there is none or it is bad."""
    if not runnable:
        return None
    members = assignment.batches[runnable[len(runnable) // 2].key]
    fitting = [
        file for file in members if file.size_bytes <= LARGEST_SAMPLED_BYTES and not file.path.startswith("s3://")
    ]
    if not fitting:
        return None
    file = max(fitting, key=lambda file: (file.size_bytes, file.path))
    kinds = {column.name: column.type for column in schema.columns}
    fields = tuple(
        TargetField(field.name, field.column, field.transform, kinds[field.column])
        for field in layout.partition
        if field.column in kinds and field.transform != "void"
    )
    columns = tuple((column.name, column.type) for column in schema.columns)
    with tempfile.TemporaryDirectory(prefix="relayout-sample-") as folder:
        shown = lay_out_sample(file, sources.formats[file.path], columns, fields, Path(folder))
    if shown is None:
        return None
    return Sample(*shown, assignment.shared.get(file.path, 1))
