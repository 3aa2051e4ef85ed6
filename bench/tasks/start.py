"""From asking for a program to its first line, beside what starts programs without nodewise."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.distributed_shell import shell
from bench.info.errors import BenchError
from bench.tasks.scene import MEMORY_MB, Scene
from boxes.broker.frames import read_frame
from infosvc.wire.errors import InfoError

SECONDS = 300.0
LOOK_SECONDS = 0.02


def measure(scene: Scene) -> Mapping[str, float]:
    """Seconds of each way, one after the other."""
    return {
        "start_process_seconds": _of_task(scene, None),
        "start_docker_seconds": _of_task(scene, scene.docker.image),
        "start_shell_seconds": _of_distributed_shell(scene),
        "start_docker_run_seconds": _of_docker(scene),
    }


def _of_task(scene: Scene, image: str | None) -> float:
    """Until the first line can be read from the service."""
    begun = time.monotonic()
    task = scene.submit("bash", "-c", "echo first", image=image)
    while True:
        with suppress(InfoError):
            if scene.client.task_log(task.task_id).text:
                break
        _check(begun)
    took = time.monotonic() - begun
    scene.await_end(task, SECONDS)
    return took


def _of_distributed_shell(scene: Scene) -> float:
    """Until the program has begun: its log cannot be read while it runs but on its node."""
    with TemporaryDirectory() as folder:
        begun, mark = time.monotonic(), Path(folder, "begun")
        with shell(scene.made.cluster, ["touch", str(mark)], 1, MEMORY_MB, java_options=()):  # as its users start it
            while not mark.exists():
                _check(begun)
            return time.monotonic() - begun


def _of_docker(scene: Scene) -> float:
    """What `docker run` does, on a node that somebody has chosen already."""
    engine, name = scene.docker.engine, "bench-start"
    begun = time.monotonic()
    body = {"Image": scene.docker.image, "Cmd": ["bash", "-c", "echo first"], "HostConfig": {"NetworkMode": "host"}}
    engine.ask("POST", "/containers/create", body, name=name)
    try:
        with closing(engine.attach(name)) as output:
            engine.ask("POST", f"/containers/{name}/start")
            if read_frame(output.recv) is None:
                raise BenchError("a container of Docker has printed nothing")
            return time.monotonic() - begun
    finally:
        engine.ask("DELETE", f"/containers/{name}", force="1")


def _check(begun: float) -> None:
    if time.monotonic() - begun > SECONDS:
        raise BenchError(f"a program has not begun within {SECONDS:g} s")
    time.sleep(LOOK_SECONDS)
