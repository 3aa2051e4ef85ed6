"""Docker for the tests of its boxes, started once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.docker_here import DockerHere
from bench.stage import until
from boxes.docker import BROKER


@pytest.fixture(scope="session")
def _docker() -> Iterator[DockerHere]:
    folder = Path(tempfile.mkdtemp(prefix="nw-docker-"))  # short: it holds sockets
    made = DockerHere(folder, [Path(tempfile.gettempdir())])
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def docker(_docker: DockerHere, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerHere]:
    """Docker and its broker, which boxes of this process and of those that it starts use; none is left behind."""
    monkeypatch.setitem(os.environ, BROKER, str(_docker.socket))
    yield _docker
    until(lambda: _docker.containers() == [], 60, "no box is left")
