"""How soon two questions are answered that no node has to work for.

`env make` is asked for what is there already, as users do, Python's start included. A task is handed over in an
environment that no node can run, of which nothing was read before: until the submitter refuses it, with the newest
version that would run. The submitter is one that has worked before, as it has a service of nodes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.environments.run import Phases
from bench.environments.scene import ENV, Scene, make
from bench.info.errors import BenchError
from bench.stage import Stage, on_cluster
from environments.fit import DRIVER
from infosvc.wire.records import Kind, Producer

OLD_DRIVER, NEW_CUDA = "470.82.01", "12.1"
MAKE_AGAIN, REFUSAL = "env make, nothing changed", "no node fits"
"""The questions."""


def make_again(scene: Scene) -> Phases:
    """Seconds of the command; BenchError when it makes anything."""
    begun = time.monotonic()
    if make(scene.cluster, scene.lock)["is_new"]:
        raise BenchError(f"{ENV} was made anew")
    return {"ready": time.monotonic() - begun}


def refuse(scene: Scene, stage: Stage, number: int) -> Phases:
    """Seconds until a task is refused in an environment that is this one by its number."""
    return {"ready": scene.submitter.ask("refuse", stage.url, str(scene.cluster.home), number, NEW_CUDA)}


@contextmanager
def serve_old_drivers(scene: Scene) -> Iterator[Stage]:
    """An information service that knows a driver of each node, older than NEW_CUDA needs."""
    with on_cluster(scene.cluster, 0) as stage:
        client = stage.client()
        client.put_producer(Producer(DRIVER, cmd="", time_max=86_400, kind=Kind.PROGRAM))
        for node in scene.nodes:
            client.put_value(DRIVER, node, OLD_DRIVER)
        yield stage
