"""Rows as they are committed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jobs.images.rows import SCHEMA, ClassRows, stream


def read(*messages: bytes) -> list[dict[str, Any]]:
    table = pa.ipc.open_stream(stream(SCHEMA, messages)).read_all()
    table.validate(full=True)
    assert table.schema == SCHEMA
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_five_classes_best_first_and_of_equal_ones_the_lower_number() -> None:
    probabilities = np.zeros((2, 1000), dtype=np.float32)
    probabilities[0, [7, 3, 900, 5, 11, 12]] = [0.2, 0.3, 0.1, 0.3, 0.05, 0.02]
    probabilities[1, 999] = 1

    first, second = read(ClassRows("worker1", "e", ["zero", "one"]).of_probabilities(["/a", "/b"], probabilities))

    assert [best["class_id"] for best in first["top5"]] == [3, 5, 7, 900, 11]
    assert [best["score"] for best in first["top5"]] == pytest.approx([0.3, 0.3, 0.2, 0.1, 0.05])
    assert (first["path"], first["class_id"], first["class_name"], first["node_name"]) == (
        "/a",
        3,
        "class 3",
        "worker1",
    )
    assert (second["class_id"], second["score"], second["error"]) == (999, 1.0, None)


def test_labels_name_the_classes_and_few_classes_make_short_lists() -> None:
    (row,) = read(
        ClassRows("worker1", "e", ["cat", "dog"]).of_probabilities(
            ["/a"], np.array([[0.1, 0.7, 0.2]], dtype=np.float32)
        )
    )

    assert [(best["class_id"], best["class_name"]) for best in row["top5"]] == [(1, "dog"), (2, "class 2"), (0, "cat")]


def test_rows_with_reasons_stand_beside_the_others() -> None:
    rows = ClassRows("worker1", "e")

    found = read(
        rows.of_probabilities(["/a"], np.eye(9, dtype=np.float32)[:1]),
        rows.failures({"/b": "no image", "/c": "gone"}),
    )

    assert [(row["path"], row["error"], row["class_id"]) for row in found] == [
        ("/a", None, 0),
        ("/b", "no image", None),
        ("/c", "gone", None),
    ]


def test_no_rows_are_a_stream_too() -> None:
    assert read() == []
