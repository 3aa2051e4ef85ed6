"""Parquet files of HDFS as a data set: some columns are the inputs, one is the target."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.training_data.contents import Contents, StoredFile
from jobs.training_data.files import File, Files, HdfsFiles, plain_path
from jobs.training_data.places import find_places
from jobs.training_data.row_groups import Arrays, Columns, RowGroups
from learning.errors import LearningError

CACHE_BYTES = 256 << 20
SUFFIX = ".parquet"
DTYPES = ("float32", "float64", "float16", "int64", "int32")


class _Group(NamedTuple):
    """A row group: the numbers of its file and within it, its rows, and a byte in its middle."""

    file: int
    number: int
    rows: int
    middle: int


def hdfs_parquet(
    path: str, inputs: Sequence[str], target: str, *, dtype: str = "float32", cache_bytes: int = CACHE_BYTES
) -> HdfsParquet:
    """The rows of a Parquet file of HDFS, or of all *.parquet in a folder; LearningError says what is wrong with them.

    A sample is its inputs, numbers of `dtype` in the order of the columns, and its target, a whole number as int64. A
    column may hold lists of equal length. Row groups that were used last are kept as far as `cache_bytes` go: when the
    columns do not fit, nearly every sample costs a read of its row group.
    """
    if isinstance(inputs, str) or not inputs:
        raise LearningError(f"inputs are {inputs!r}", 'give a list of columns, as ["width", "height"]')
    if dtype not in DTYPES:
        raise LearningError(f"dtype is {dtype!r}", f"give one of {', '.join(DTYPES)}")
    plain = plain_path(path)
    return HdfsParquet(HdfsFiles(), plain, Columns(tuple(inputs), target, np.dtype(dtype)), cache_bytes)


class HdfsParquet:
    """A data set for `Run`; `hdfs_parquet` makes one."""

    reads_ahead = True

    def __init__(self, files: Files, path: str, columns: Columns, cache_bytes: int = CACHE_BYTES) -> None:
        self._contents = Contents(files)
        self._columns = columns
        found = [one for one in self._contents.find(path) if not one.is_folder]
        self._files = [one for one in found if one.path == path or one.path.endswith(SUFFIX)]
        self._opened = {number: self._open(file) for number, file in enumerate(self._files)}
        self._groups = [group for number, one in self._opened.items() for group in _groups(number, one.metadata)]
        self._ends = np.cumsum([group.rows for group in self._groups], dtype=np.int64)
        if not len(self):
            raise LearningError(f"{path} holds no rows", f"name a file, or a folder with *{SUFFIX}")
        self._shape: tuple[tuple[int, ...], tuple[int, ...]] | None = None
        self._cache = RowGroups(self._read, cache_bytes)
        told = [(one.path, one.length) for one in self._files], self._groups, columns
        self.fingerprint = blake2b(repr(told).encode(), digest_size=8).hexdigest()

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, number: int) -> tuple[npt.NDArray[Any], Any]:
        x, y = self.batch_of([number])
        return x[0], y[0]

    def batch_of(self, numbers: Sequence[int]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Inputs of shape (number, columns), and targets; row group by row group, so that each is looked up once."""
        chosen = np.asarray(numbers, np.int64)
        group = np.searchsorted(self._ends, chosen, side="right")
        x: list[npt.NDArray[Any]] = []
        y: list[npt.NDArray[Any]] = []
        order = np.argsort(group, kind="stable")
        for one in np.unique(group).tolist():
            arrays = self._cache.get(one)
            rows = chosen[group == one] - (self._ends[one] - self._groups[one].rows)
            x.append(arrays.x[rows])
            y.append(arrays.y[rows])
        back = np.argsort(order, kind="stable")
        return np.concatenate(x)[back], np.concatenate(y)[back]

    def places_of(self, numbers: Sequence[int]) -> list[tuple[str, ...]]:
        """The nodes that hold the middle of the row group of each of these rows."""
        of_group = find_places(
            self._contents.files,
            self._files,
            np.array([group.file for group in self._groups], np.int64),
            np.array([group.middle for group in self._groups], np.int64),
        )
        groups = np.searchsorted(self._ends, np.asarray(numbers, np.int64), side="right")
        return [of_group[one] for one in groups.tolist()]

    def _open(self, file: File) -> pq.ParquetFile:
        try:
            opened = pq.ParquetFile(StoredFile(self._contents, file))
        except MemoryError:
            raise
        except (pa.ArrowException, ValueError, OSError) as error:
            reason = str(error).split("\n", 1)[0]
            raise LearningError(f"{file.path} cannot be read as Parquet: {reason}", "write it again") from None
        self._columns.check(file.path, opened.schema_arrow)
        return opened

    def _read(self, number: int) -> Arrays:
        group = self._groups[number]
        path = self._files[group.file].path
        try:
            wanted = list(dict.fromkeys((*self._columns.inputs, self._columns.target)))
            table = self._opened[group.file].read_row_group(group.number, columns=wanted, use_threads=False)
        except MemoryError:  # of pyarrow's exceptions, too; whoever asked may ask for less
            raise
        except (pa.ArrowException, OSError) as error:
            reason = str(error).split("\n", 1)[0]
            raise LearningError(
                f"row group {group.number} of {path} cannot be read: {reason}", "write it again"
            ) from None
        found = self._columns.arrays(path, table)
        shape = found.x.shape[1:], found.y.shape[1:]
        if shape != (self._shape or shape):
            raise LearningError(
                f"row group {group.number} of {path} has samples of the shape {shape}, and others have {self._shape}",
                "write lists of equal length",
            )
        self._shape = shape
        return found


def _groups(file: int, told: pq.FileMetaData) -> list[_Group]:
    return [_group(file, number, told.row_group(number)) for number in range(told.num_row_groups)]


def _group(file: int, number: int, told: pq.RowGroupMetaData) -> _Group:
    columns = [told.column(one) for one in range(told.num_columns)]
    begins = [
        one.data_page_offset
        if one.dictionary_page_offset is None
        else min(one.dictionary_page_offset, one.data_page_offset)
        for one in columns
    ]
    ends = [begin + one.total_compressed_size for begin, one in zip(begins, columns, strict=True)]
    return _Group(file, number, told.num_rows, (min(begins) + max(ends)) // 2)
