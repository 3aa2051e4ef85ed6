"""One row per picture, made where it was classified, and many rows as the Arrow stream that is committed."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

BEST = 5
SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("class_id", pa.int32()),
        ("class_name", pa.string()),
        ("score", pa.float32()),
        ("top5", pa.list_(pa.struct([("class_id", pa.int32()), ("class_name", pa.string()), ("score", pa.float32())]))),
        ("node_name", pa.string()),
        ("engine", pa.string()),
        ("error", pa.string()),
    ]
)
_END = struct.pack("<iI", -1, 0)
"""What ends an Arrow stream: the mark of a message, and no message."""


@dataclass(frozen=True)
class Rows:
    """Makes the rows of one node; `labels` names the classes by their number."""

    node_name: str
    engine: str
    labels: Sequence[str] | None = None

    def classified(self, names: Sequence[str], probabilities: np.ndarray) -> bytes:
        """One message of an Arrow stream with a row for each of `names`; probabilities (names, classes)."""
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
        return self._message(names, [*first, pa.array(scores[:, 0]), top5], pa.nulls(len(names), pa.string()))

    def failed(self, reasons: Mapping[str, str]) -> bytes:
        """One message with a row for each picture that has none of a network, and why."""
        nothing = [
            pa.nulls(len(reasons), SCHEMA.field(name).type) for name in ("class_id", "class_name", "score", "top5")
        ]
        return self._message(list(reasons), nothing, pa.array(list(reasons.values()), pa.string()))

    def _message(self, names: Sequence[str], found: list[pa.Array], errors: pa.Array) -> bytes:
        same = [pa.array([text] * len(names), pa.string()) for text in (self.node_name, self.engine)]
        columns = [pa.array(names, pa.string()), *found, *same, errors]
        message: bytes = pa.RecordBatch.from_arrays(columns, schema=SCHEMA).serialize().to_pybytes()
        return message

    def _class_name(self, class_id: int) -> str:
        if self.labels is not None and class_id < len(self.labels):
            return self.labels[class_id]
        return f"class {class_id}"


def stream(messages: Iterable[bytes]) -> bytes:
    """The Arrow stream of SCHEMA that has these messages; nothing in them is looked at."""
    return b"".join((SCHEMA.serialize().to_pybytes(), *messages, _END))


def _best(probabilities: np.ndarray, count: int) -> np.ndarray:
    """The most probable classes of each picture, best first and of equal ones the lower number; (pictures, count)."""
    some = np.sort(np.argpartition(probabilities, -count, axis=1)[:, -count:], axis=1)
    order = np.argsort(-np.take_along_axis(probabilities, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1).astype(np.int32)
