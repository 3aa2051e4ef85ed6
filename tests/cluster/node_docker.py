"""Docker where the nodes of a cluster look for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.docker_here import DockerHere
from boxes.broker.frames import SOCKET
from hadoop.local.lifecycle import Cluster


@contextmanager
def docker_of(cluster: Cluster) -> Iterator[DockerHere]:
    """Docker and a broker, and an image that the broker allows; both end with the block."""
    Path(SOCKET).parent.mkdir(parents=True, exist_ok=True)
    made = DockerHere(Path(tempfile.mkdtemp(prefix="nw-docker-")), [cluster.home], Path(SOCKET))
    made.start()
    try:
        yield made
    finally:
        made.stop()
