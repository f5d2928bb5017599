"""Groups of real files on a disk, rewritten without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from relayout.kernels.deletes import puffin_of_one_vector
from relayout.kernels.group_read import GroupColumns
from relayout.kernels.metrics import Leaf
from relayout.kernels.parquet_shapes import WantedColumn
from relayout.kernels.rewrite import GroupWork, RewriteTask, run_rewrite
from relayout.kernels.write import Target
from relayout.table.rewrites import GroupFiles, PlannedDelete, PlannedFile

KINDS = {"int": "INTEGER", "long": "BIGINT", "string": "VARCHAR", "double": "DOUBLE"}


def column(name: str, field_id: int, kind: str, default: str = "") -> WantedColumn:
    """A plain column of the table."""
    return WantedColumn(name, field_id, KINDS[kind], "leaf", (), default)


class Group:
    """A group in the making: data files, delete files, and the table's columns that they are read as."""

    def __init__(self, folder: Path, columns: Mapping[WantedColumn, str], lineage: bool = False) -> None:
        self.folder = folder
        self.columns = columns
        self.lineage = lineage
        self.older: dict[int, WantedColumn] = {}
        self.name_mapping: dict[str, int] = {}
        self.constants: list[tuple[tuple[int, str], ...]] = []
        self.data: list[PlannedFile] = []
        self.deletes: list[PlannedDelete] = []

    def file(
        self,
        age: int,
        columns: Mapping[tuple[str, int | None], pa.Array],
        *,
        first_row_id: int | None = None,
        constants: tuple[tuple[int, str], ...] = (),
        partition: Sequence[Any] = (),
    ) -> str:
        """A data file whose rows are so old, with these columns by name and field id; its path."""
        path = self._write(f"data-{len(self.data)}.parquet", columns)
        content = self._content(path, "data", partition, pq.read_metadata(path).num_rows)
        self.data.append(PlannedFile(content, age, first_row_id))
        self.constants.append(constants)
        return path

    def delete_positions(self, age: int, places: Sequence[tuple[str, int]], files: Sequence[int]) -> None:
        """A position delete file that applies to these data files."""
        ids = {("file_path", 2147483546): pa.array([path for path, _ in places])}
        columns = {**ids, ("pos", 2147483545): pa.array([position for _, position in places], pa.int64())}
        path = self._write(f"deletes-{len(self.deletes)}.parquet", columns)
        self._applies(PlannedDelete(self._content(path, "position-deletes", (), len(places)), age), files)

    def delete_keys(self, age: int, columns: Mapping[tuple[str, int | None], pa.Array], files: Sequence[int]) -> None:
        """An equality delete file that applies to these data files."""
        path = self._write(f"deletes-{len(self.deletes)}.parquet", columns)
        content = {**self._content(path, "equality-deletes", (), 1), "equality-ids": [key for _, key in columns]}
        self._applies(PlannedDelete(content, age), files)

    def delete_vector(self, age: int, data: int, positions: Sequence[int]) -> None:
        """A deletion vector of one data file."""
        body, place = puffin_of_one_vector(self.data[data].path, np.array(positions))
        path = self.folder / f"deletes-{len(self.deletes)}.puffin"
        path.write_bytes(body)
        content = self._content(str(path), "position-deletes", (), len(positions))
        vector = {"file-format": "puffin", "referenced-data-file": self.data[data].path}
        self._applies(PlannedDelete({**content, **vector, **place}, age), [data])

    def rewrite(self, **target: Any) -> dict[str, Any]:
        """What the kernel tells of the group."""
        work = GroupWork(
            0, GroupFiles(tuple(self.data), tuple(self.deletes)), tuple(self.constants), self.target(**target)
        )
        wanted = tuple(self.columns)
        by_id = {**self.older, **{item.field_id: item for item in wanted}}
        columns = GroupColumns(wanted, by_id, self.name_mapping, self.lineage)
        (result,) = run_rewrite(RewriteTask((work,), columns, 256 << 20))
        return result

    def target(self, **changes: Any) -> Target:
        ids = {item.name: item.field_id for item in self.columns}
        kinds = {item.name: kind for item, kind in self.columns.items()}
        if self.lineage:
            ids |= {"_row_id": 2147483540, "_last_updated_sequence_number": 2147483539}
            kinds |= {"_row_id": "long", "_last_updated_sequence_number": "long"}
        target = Target(
            data_location=str(self.folder / "out"),
            scratch=str(self.folder),
            file_prefix="run",
            spec_id=0,
            fields=(),
            columns=tuple(kinds.items()),
            field_ids="{" + ", ".join(f'"{name}": {field_id}' for name, field_id in ids.items()) + "}",
            leaves=tuple(Leaf(f'"{item.name}"', item.field_id, kind) for item, kind in self.columns.items()),
            order_by=(),
            batch_columns=(),
            named_batch_columns=(),
            target_file_bytes=1 << 30,
            codec="zstd",
            store={},
            partition=(),
        )
        return replace(target, **changes)

    def _applies(self, delete: PlannedDelete, files: Sequence[int]) -> None:
        self.deletes.append(delete)
        for place in files:
            file = self.data[place]
            self.data[place] = replace(file, deletes=(*file.deletes, len(self.deletes) - 1))

    def _write(self, name: str, columns: Mapping[tuple[str, int | None], pa.Array]) -> str:
        fields = []
        for (column_name, field_id), values in columns.items():
            told = None if field_id is None else {b"PARQUET:field_id": str(field_id).encode()}
            fields.append(pa.field(column_name, values.type, metadata=told))
        pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), self.folder / name)
        return str(self.folder / name)

    def _content(self, path: str, content: str, partition: Sequence[Any], rows: int) -> dict[str, Any]:
        return {
            "spec-id": 0,
            "content": content,
            "file-path": path,
            "file-format": "parquet",
            "partition": list(partition),
            "file-size-in-bytes": Path(path).stat().st_size,
            "record-count": rows,
        }


def rows_of(result: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of all new files."""
    tables = [pq.read_table(output["file-path"]) for output in result["outputs"]]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]
