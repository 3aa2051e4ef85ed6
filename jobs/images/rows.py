"""One row per image, made where it was looked at, and many rows as the Arrow stream that is committed."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from jobs.images.rows_size import LARGEST_ROW, ROW_BYTES
from jobs.images.tensors import ImageArrays, OutputTensor, stored_type

BEST = 5
_PATH = [("path", pa.string())]
_REST = [("node_name", pa.string()), ("engine", pa.string()), ("error", pa.string())]
_BEST = pa.list_(pa.struct([("class_id", pa.int32()), ("class_name", pa.string()), ("score", pa.float32())]))
_CLASSES = [("class_id", pa.int32()), ("class_name", pa.string()), ("score", pa.float32()), ("top5", _BEST)]
SCHEMA = pa.schema(_PATH + _CLASSES + _REST)
"""Of a classifier's rows."""
TENSORS_KEY = b"nodewise.outputs"
"""In the metadata of other networks' rows: a JSON list of {"column", "name", "dtype", "shape"}."""
_END = struct.pack("<iI", -1, 0)
"""What ends an Arrow stream: the mark of a message, and no message."""


class Rows(Protocol):
    """Makes the rows of one node."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""

    def of(self, names: Sequence[str], results: Sequence[ImageArrays]) -> bytes:
        """One message of an Arrow stream with a row for each of `names`; `results` is what an engine inferred."""

    def failures(self, reasons: Mapping[str, str]) -> bytes:
        """One message with a row for each image that has none of a network, and why."""


@dataclass(frozen=True)
class ClassRows:
    """Rows of a classifier; `labels` names the classes by their number."""

    node_name: str
    engine: str
    labels: Sequence[str] | None = None
    has_softmax: bool = True

    @property
    def schema(self) -> pa.Schema:
        """As Rows has it."""
        return SCHEMA

    def of(self, names: Sequence[str], results: Sequence[ImageArrays]) -> bytes:
        """As Rows has it; a classifier has one output."""
        return self.of_probabilities(names, probabilities(results[0], self.has_softmax))

    def of_probabilities(self, names: Sequence[str], probabilities: np.ndarray) -> bytes:
        """The same of probabilities (names, classes)."""
        count = min(BEST, probabilities.shape[1])
        best = _best(probabilities, count)
        scores = np.take_along_axis(probabilities, best, axis=1).astype(np.float32)
        classes = pa.array([self._class_name(int(number)) for number in best.ravel()], pa.string())
        fields = [pa.array(best.ravel(), pa.int32()), classes, pa.array(scores.ravel())]
        top5 = pa.ListArray.from_arrays(
            pa.array(np.arange(0, best.size + 1, count), pa.int32()),
            pa.StructArray.from_arrays(fields, names=["class_id", "class_name", "score"]),
        )
        first = [pa.array(best[:, 0], pa.int32()), classes.take(pa.array(np.arange(0, best.size, count)))]
        return _message(self, names, [*first, pa.array(scores[:, 0]), top5], pa.nulls(len(names), pa.string()))

    def failures(self, reasons: Mapping[str, str]) -> bytes:
        """As Rows has it."""
        return _failure_message(self, reasons)

    def _class_name(self, class_id: int) -> str:
        if self.labels is not None and class_id < len(self.labels):
            return self.labels[class_id]
        return f"class {class_id}"


@dataclass(frozen=True)
class TensorRows:
    """Rows with what a network gave, a list of numbers for each output; its shape stands in the metadata.

    An image has an error instead if what came for it would make a row of more than `largest_row` bytes.
    """

    node_name: str
    engine: str
    outputs: Sequence[OutputTensor]
    largest_row: int = LARGEST_ROW

    @property
    def schema(self) -> pa.Schema:
        """As Rows has it."""
        columns = self._columns()
        named = list(zip(columns, self.outputs, strict=True))
        said = [{"column": at, "name": one.name, "dtype": one.dtype, "shape": one.shape} for at, one in named]
        lists = [(at, pa.list_(_arrow_type(one))) for at, one in named]
        return pa.schema(_PATH + lists + _REST, metadata={TENSORS_KEY: json.dumps(said)})

    def of(self, names: Sequence[str], results: Sequence[ImageArrays]) -> bytes:
        """As Rows has it."""
        errors = [self._flaw([np.asarray(rows[number]) for rows in results]) for number in range(len(names))]
        lists = [_lists(rows, _arrow_type(one), errors) for rows, one in zip(results, self.outputs, strict=True)]
        return _message(self, names, lists, pa.array(errors, pa.string()))

    def failures(self, reasons: Mapping[str, str]) -> bytes:
        """As Rows has it."""
        return _failure_message(self, reasons)

    def _flaw(self, found: Sequence[np.ndarray]) -> str | None:
        """Why what came for one image cannot be stored."""
        size = sum(one.size * stored_type(one.dtype.name).itemsize for one in found)
        if ROW_BYTES + size <= self.largest_row or not any(one.is_open for one in self.outputs):
            return None
        most = self.largest_row - ROW_BYTES
        return f"its outputs have {size:,} bytes, and {most:,} can be stored: try a smaller --batch"

    def _columns(self) -> list[str]:
        """Names of the outputs, changed where they are those of other columns."""
        found: list[str] = [name for name, _ in _PATH + _REST]
        for output in self.outputs:
            name = output.name
            while name in found:
                name += "_"
            found.append(name)
        return found[len(_PATH + _REST) :]


def rows_of(
    node_name: str,
    engine: str,
    labels: Sequence[str] | None,
    has_softmax: bool,
    tensors: Sequence[OutputTensor] | None,
    largest_row: int = LARGEST_ROW,
) -> ClassRows | TensorRows:
    """Rows of tensors, or without any those of a classifier."""
    if tensors is None:
        return ClassRows(node_name, engine, labels, has_softmax)
    return TensorRows(node_name, engine, tensors, largest_row)


def row_bytes(tensors: Sequence[OutputTensor] | None) -> int:
    """About the most that a row has."""
    return ROW_BYTES + sum(one.largest_bytes for one in tensors or ())


def find_flaw(schema: pa.Schema) -> str:
    """What is wrong with the columns of rows, nothing when they are those of a classifier or of tensors."""
    if schema.equals(SCHEMA) or _is_of_tensors(schema):
        return ""
    return f"the columns of the rows are {schema.names}, and have to be {SCHEMA.names} of its types, or tensors"


def _is_of_tensors(schema: pa.Schema) -> bool:
    first, rest = pa.schema(_PATH), pa.schema(_REST)
    columns = list(schema)
    return (
        TENSORS_KEY in (schema.metadata or {})
        and pa.schema(columns[: len(first)]).equals(first)
        and pa.schema(columns[-len(rest) :]).equals(rest)
        and all(pa.types.is_list(one.type) for one in columns[len(first) : -len(rest)])
    )


def stream(schema: pa.Schema, messages: Iterable[bytes]) -> bytes:
    """The Arrow stream of a schema that has these messages; nothing in them is looked at."""
    return b"".join((schema.serialize().to_pybytes(), *messages, _END))


def _failure_message(rows: ClassRows | TensorRows, reasons: Mapping[str, str]) -> bytes:
    found = list(rows.schema)[len(_PATH) : -len(_REST)]
    nothing = [pa.nulls(len(reasons), column.type) for column in found]
    return _message(rows, list(reasons), nothing, pa.array(list(reasons.values()), pa.string()))


def _message(rows: ClassRows | TensorRows, names: Sequence[str], found: list[pa.Array], errors: pa.Array) -> bytes:
    same = [pa.array([text] * len(names), pa.string()) for text in (rows.node_name, rows.engine)]
    columns = [pa.array(names, pa.string()), *found, *same, errors]
    message: bytes = pa.RecordBatch.from_arrays(columns, schema=rows.schema).serialize().to_pybytes()
    return message


def _lists(rows: ImageArrays, kind: pa.DataType, errors: Sequence[str | None]) -> pa.Array:
    """A list an image, null for one that has an error."""
    flat = [np.asarray(row).ravel()[: 0 if error else None] for row, error in zip(rows, errors, strict=True)]
    ends = pa.array(np.cumsum([0, *map(len, flat)]), pa.int32())
    mask = pa.array([bool(error) for error in errors])
    return pa.ListArray.from_arrays(ends, pa.array(np.concatenate(flat)).cast(kind), mask=mask)


def _arrow_type(output: OutputTensor) -> pa.DataType:
    return pa.from_numpy_dtype(stored_type(output.dtype))


def probabilities(rows: ImageArrays, has_softmax: bool) -> np.ndarray:
    """(images, classes), float32, of the one output of a classifier."""
    numbers = np.asarray(rows, dtype=np.float32).reshape(len(rows), -1)
    if has_softmax:
        return numbers
    powers = np.exp(numbers - numbers.max(axis=1, keepdims=True))
    made: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return made


def _best(probabilities: np.ndarray, count: int) -> np.ndarray:
    """The most probable classes of each image, best first and of equal ones the lower number; (images, count)."""
    some = np.sort(np.argpartition(probabilities, -count, axis=1)[:, -count:], axis=1)
    order = np.argsort(-np.take_along_axis(probabilities, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1).astype(np.int32)
