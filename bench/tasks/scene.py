"""A cluster, its service with a submitter, and a Docker whose image its nodes allow."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.docker_here import DockerHere
from bench.info.errors import BenchError
from bench.stage import Stage, stage
from boxes.broker.frames import SOCKET
from infosvc.wire.client import InfoClient
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task

MEMORY_MB = 128


@dataclass(frozen=True)
class Scene:
    """What tasks of the bench run on."""

    made: Stage
    docker: DockerHere
    client: InfoClient

    def submit(self, *argv: str, image: str | None = None) -> Task:
        """Ask for a task."""
        return self.client.submit_task(TaskSpec(argv, memory_mb=MEMORY_MB, image=image))

    def await_end(self, task: Task, seconds: float) -> Task:
        """The task once it has succeeded; BenchError when it does not."""
        deadline = time.monotonic() + seconds
        while not (now := self.client.task(task.task_id)).state.is_final:
            if time.monotonic() > deadline:
                raise BenchError(f"{task.task_id} has not ended within {seconds:g} s")
            time.sleep(0.2)
        if now.state != "succeeded":
            raise BenchError(f"{task.task_id} is {now.state}: {now.reason}")
        return now


@contextmanager
def scene(nodes: int) -> Iterator[Scene]:
    """The scene until the end of the block; Docker needs root."""
    with stage(None, 0, nodes=nodes, serve=("--submit",)) as made:
        made.set_masters_share(1.0)
        Path(SOCKET).parent.mkdir(parents=True, exist_ok=True)
        docker = DockerHere(Path(tempfile.mkdtemp(prefix="nw-docker-")), [made.cluster.home], Path(SOCKET))
        docker.start()
        try:
            made.nodewise("task", "image", "add", str(docker.archive), "--name", "bench")
            yield Scene(made, docker, made.client())
        finally:
            docker.stop()
