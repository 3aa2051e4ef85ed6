"""What a job is told, and files that are there or were written, without HDFS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from jobs.application.job_spec import JobSpec
from jobs.kinds.classify.settings import ClassifySettings

SETTINGS = ClassifySettings(
    input="/in",
    output="/out",
    engine="mxnet_alexnet",
    policy="algorithm1",
    capability="weight",
    worker_python="",
)
SPEC = JobSpec(
    kind="classify",
    job_id="application_1_0001",
    staging="/staging",
    info_url="",
    conf_dir="",
    jars="",
    user="",
    token="",
    settings=asdict(SETTINGS),
)


class Written(dict[str, bytes]):
    """Files in the place of HDFS: wrong rows, or a foreign output at the wrong time, cannot be had from a real one."""

    def write(self, name: str, content: bytes) -> None:
        self[name] = content

    @contextmanager
    def open_writer(self, name: str, block_bytes: int | None = None) -> Iterator[Callable[[bytes], None]]:
        content = bytearray()
        yield content.extend
        self[name] = bytes(content)

    def make_folder(self, name: str) -> None:
        """Folders are where files are."""

    def exists(self, name: str) -> bool:
        return any(one == name or one.startswith(f"{name}/") for one in self)

    def read(self, name: str) -> bytes:
        return self[name]
