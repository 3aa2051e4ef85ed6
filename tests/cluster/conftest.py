"""One real cluster of four nodes for all tests of this folder, and a way to wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hadoop.local import lifecycle
from hadoop.local.lifecycle import Cluster

HERE = Path(__file__).parent
Eventually = Callable[..., None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, so that `-m "not cluster"` leaves them out."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the session's cluster."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def cluster(home: Path) -> Iterator[Cluster]:
    """A running cluster of four nodes; tests that break daemons start their own instead."""
    try:
        yield lifecycle.up(home, nodes=4)
    finally:
        lifecycle.down(home)


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[Path]:
    """A home for a test's own cluster, which is stopped afterwards in any case."""
    try:
        yield tmp_path
    finally:
        lifecycle.down(tmp_path)


@pytest.fixture
def eventually() -> Eventually:
    """Wait until a condition holds, and fail when it does not in time."""

    def wait(condition: Callable[[], object], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"still not so after {seconds} s"
            time.sleep(0.05)

    return wait
