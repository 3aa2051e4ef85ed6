"""One row per picture, as the Parquet file that users read."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


@dataclass
class Results:
    """Rows of one node, in the order they were finished; `labels` names the classes by their number."""

    node_name: str
    engine: str
    labels: list[str] | None = None

    def __post_init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self.errors = 0

    def add(self, path: str, probabilities: np.ndarray) -> None:
        """A picture that was classified: probabilities (classes,)."""
        best = np.argsort(probabilities, kind="stable")[::-1][:5]
        top5 = [
            {"class_id": int(at), "class_name": self._class_name(int(at)), "score": float(probabilities[at])}
            for at in best
        ]
        self._append(path, {**top5[0], "top5": top5, "error": None})

    def add_error(self, path: str, reason: str) -> None:
        """A picture that was not, and why."""
        self.errors += 1
        self._append(path, {"class_id": None, "class_name": None, "score": None, "top5": None, "error": reason})

    def to_parquet(self) -> bytes:
        """The file's content."""
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(self.rows, schema=SCHEMA), sink)
        return sink.getvalue()

    def _append(self, path: str, row: dict[str, object]) -> None:
        self.rows.append({"path": path, "node_name": self.node_name, "engine": self.engine, **row})

    def _class_name(self, class_id: int) -> str:
        if self.labels is not None and class_id < len(self.labels):
            return self.labels[class_id]
        return f"class {class_id}"
