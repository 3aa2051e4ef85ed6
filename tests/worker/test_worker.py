"""A worker's batches, rows and last word, on the real network; only HDFS is a folder here."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest

from jobs.engines import Engine, create
from jobs.settings import WorkerSettings
from jobs.worker.master import Progress
from jobs.worker.worker import Worker

JPEG = bytes(cv2.imencode(".jpg", np.full((300, 400, 3), 77, dtype=np.uint8))[1])


class Shelf:
    """Storage whose files are a dictionary, so that a broken one can be put anywhere."""

    def __init__(self, files: dict[str, bytes | Exception]) -> None:
        self.files = files
        self.written: dict[str, bytes] = {}

    def read(self, paths: Sequence[str]) -> Iterator[bytes | Exception]:
        return (self.files[path] for path in paths)

    def write(self, path: str, content: bytes) -> None:
        self.written[path] = content


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = create("mxnet_alexnet")
    made.load(None, batch=4)
    return made


def run(
    engine: Engine, files: dict[str, bytes | Exception], labels: list[str] | None = None
) -> tuple[list[dict[str, Any]], list[Progress]]:
    settings = WorkerSettings(
        node_name="worker1",
        master="http://127.0.0.1:1",
        token="",
        engine="mxnet_alexnet",
        batch=4,
        threads=1,
        weights=None,
        labels=None,
        results="/out/part",
        images=list(files),
    )
    shelf = Shelf(files)
    said: list[Progress] = []
    Worker(settings, engine, shelf, labels, said.append).run()  # type: ignore[arg-type]
    return pq.read_table(io.BytesIO(shelf.written["/out/part"])).to_pylist(), said


def test_every_picture_has_one_row_with_five_classes(engine: Engine) -> None:
    rows, said = run(engine, {f"/a/{n}.jpg": JPEG for n in range(10)})

    assert [row["path"] for row in rows] == [f"/a/{n}.jpg" for n in range(10)]
    assert all(len(row["top5"]) == 5 and row["error"] is None for row in rows)
    assert all(row["top5"][0]["class_id"] == row["class_id"] for row in rows)
    assert [progress.images for progress in said] == [4, 8, 10, 10]
    assert said[-1].finished
    assert said[-1].bytes_read == 10 * len(JPEG)


def test_a_broken_picture_costs_its_own_row_only(engine: Engine) -> None:
    rows, said = run(engine, {"/good": JPEG, "/cut": JPEG[:300], "/gone": OSError("no such block"), "/also": JPEG})

    errors = {row["path"]: row["error"] for row in rows}
    assert errors["/good"] is None
    assert errors["/also"] is None
    assert errors["/cut"]
    assert errors["/gone"] == "cannot be read from HDFS: no such block"
    assert said[-1].errors == 2


def test_a_share_of_nothing_but_broken_pictures_still_ends(engine: Engine) -> None:
    rows, said = run(engine, {"/a": b"", "/b": b"text"})

    assert [row["class_id"] for row in rows] == [None, None]
    assert said[-1].finished


def test_labels_name_the_classes(engine: Engine) -> None:
    rows, _ = run(engine, {"/a": JPEG}, labels=[f"animal {n}" for n in range(1000)])

    assert rows[0]["class_name"] == f"animal {rows[0]['class_id']}"
