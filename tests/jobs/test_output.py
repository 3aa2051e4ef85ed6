"""A result is complete and has every picture once, or there is none."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.errors import JobError
from jobs.partitioner.output import Output
from jobs.settings import JobSettings
from locality.types import Block, Part, Plan

SETTINGS = JobSettings(
    job_id="application_1_0001",
    input="/in",
    output="/out",
    staging="/staging",
    engine="mxnet_alexnet",
    policy="algorithm1",
    capability="weight",
    info_url="",
    conf_dir="",
    jars="",
    user="",
    worker_python="",
)


class Parts:
    """What the workers wrote, as paths per file: a worker that cheats cannot be had from a real one."""

    def __init__(self, rows: dict[str, list[str]]) -> None:
        self.rows = rows

    def read(self, name: str) -> bytes:
        sink = io.BytesIO()
        node = name.removeprefix("/staging/output/part-").removesuffix(".parquet")
        pq.write_table(pa.table({"path": self.rows[node]}), sink)
        return sink.getvalue()


def check(rows: dict[str, list[str]], images: list[str]) -> None:
    block = Block("any", 1, 1, ())
    plan = Plan({"a": (Part(block, 0, 1),), "b": (Part(block, 0, 1),), "idle": ()})
    Output(Parts(rows), SETTINGS).check(images, plan)  # type: ignore[arg-type]


def test_every_picture_once_is_accepted() -> None:
    check({"a": ["/in/1", "/in/2"], "b": ["/in/3"]}, ["/in/1", "/in/2", "/in/3"])


@pytest.mark.parametrize(
    "rows",
    [
        {"a": ["/in/1"], "b": ["/in/3"]},
        {"a": ["/in/1", "/in/2"], "b": ["/in/3", "/in/2"]},
        {"a": ["/in/1", "/in/2"], "b": ["/in/3", "/in/4"]},
        {"a": ["/in/1", "/in/1"], "b": ["/in/3"]},
    ],
    ids=["one missing", "one twice", "one invented", "one twice instead of another"],
)
def test_anything_else_is_refused(rows: dict[str, list[str]]) -> None:
    with pytest.raises(JobError, match="do not have exactly one row"):
        check(rows, ["/in/1", "/in/2", "/in/3"])
