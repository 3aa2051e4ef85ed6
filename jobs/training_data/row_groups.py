"""Row groups of Parquet as arrays, the last used ones kept: a step needs rows from many of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from learning.errors import LearningError


class Arrays(NamedTuple):
    """Of one row group: inputs of shape (rows, numbers), and targets of shape (rows,) or (rows, numbers)."""

    x: npt.NDArray[Any]
    y: npt.NDArray[Any]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.x.nbytes + self.y.nbytes


@dataclass(frozen=True)
class Columns:
    """Which columns are inputs, in their order, and which one is the target; `dtype` of what is no whole number."""

    inputs: Sequence[str]
    target: str
    dtype: np.dtype[Any]

    def check(self, path: str, schema: pa.Schema) -> None:
        """LearningError when a file lacks one of them, or one holds no numbers."""
        for name in (*self.inputs, self.target):
            if name not in schema.names:
                raise LearningError(
                    f"{path} has no column {name}: it has {', '.join(schema.names)}", "name one of these columns"
                )
            kind = schema.field(name).type
            inner = kind.value_type if _is_list(kind) else kind
            if not (pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_boolean(inner)):
                raise LearningError(
                    f"the column {name} of {path} holds {kind}", "name columns of numbers, or of lists of numbers"
                )

    def arrays(self, path: str, table: pa.Table) -> Arrays:
        """LearningError when a value is missing, or lists differ in length."""
        x = [self._column(path, table, name) for name in self.inputs]
        flat = [one[:, None] if one.ndim == 1 else one for one in x]
        y = self._column(path, table, self.target)
        whole = y.dtype.kind in "iu"
        return Arrays(
            np.concatenate(flat, axis=1, dtype=self.dtype, casting="unsafe"), y if whole else y.astype(self.dtype)
        )

    def _column(self, path: str, table: pa.Table, name: str) -> npt.NDArray[Any]:
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0)
        rows = len(column)
        values = column.flatten() if _is_list(column.type) else column
        if column.null_count or values.null_count:
            raise LearningError(f"the column {name} of {path} has rows without a value", "fill them, or leave them out")
        found: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
        if found.dtype.kind in "iub":
            found = found.astype(np.int64)
        if not _is_list(column.type):
            return found
        lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False)).tolist()
        if len(lengths) != 1:
            raise LearningError(
                f"the column {name} of {path} has lists of {lengths[0]} to {lengths[-1]} numbers", "make them equal"
            )
        return found.reshape(rows, -1)


class RowGroups:
    """`read` gives the arrays of a row group by its number; those used last are kept, as far as `most` bytes go."""

    def __init__(self, read: Callable[[int], Arrays], most: int) -> None:
        self._read = read
        self._most = most
        self._bytes = 0
        self._kept: OrderedDict[int, Arrays] = OrderedDict()

    def get(self, number: int) -> Arrays:
        """Read, or kept."""
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        found = self._read(number)
        self._kept[number] = found
        self._bytes += found.size
        while self._bytes > self._most and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].size
        return found


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
