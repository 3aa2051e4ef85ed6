"""One real cluster of four nodes for all tests of this folder, and a way to wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench.stage import PATIENT
from hadoop.local import health, lifecycle
from hadoop.local.lifecycle import Cluster
from hadoop.rest.pages import NoAnswer
from tests.cluster import commands
from tests.cluster.hadoop_scripts import Scripts, scripts_of
from tests.cluster.site import Site, pause_after
from tests.cluster.standing import Standing
from tests.cluster.task_platform import Platform, platform_of
from tests.cluster.task_session import Tasks, session_of
from tests.infosvc.conftest import mariadb

__all__ = ["mariadb"]  # which modules here use, too

HERE = Path(__file__).parent
Eventually = Callable[..., None]


# Modules by what they do to the cluster that they share: agents run beside as few of them as possible, and those that
# change its settings or kill what belongs to it come last, HDFS after YARN: whoever came next would start it anew.
ORDER = ("cluster", "site", "dashboard", "stage", "special", "other_hdfs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, so that `-m "not cluster"` leaves them out, and order them.

    Before any of them the shared cluster may have to be started or mended, which takes minutes on a busy machine.
    """
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(1800))
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    used = getattr(item, "fixturenames", ())
    return max((place for place, name in enumerate(ORDER) if name in used), default=0)


@pytest.fixture(scope="module")
def kept_commands() -> Iterator[None]:
    """Commands of a module that calls many share a process for each home."""
    with commands.keep_processes():
        yield


@pytest.fixture(scope="module")
def cluster(standing: Standing) -> Cluster:
    """A cluster of four nodes that modules use one after another."""
    return standing.cluster()


@pytest.fixture(scope="module")
def site(standing: Standing) -> Site:
    """A service, agents and images on that cluster, as if no module had used them before."""
    return standing.site()


@pytest.fixture(scope="module")
def tasks(cluster: Cluster) -> Iterator[Tasks]:
    """A session that submits tasks to that cluster."""
    with session_of(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def scripts(cluster: Cluster) -> Iterator[Scripts]:
    """A process that runs scripts beside Hadoop's own client on that cluster."""
    with scripts_of(cluster) as made:
        yield made


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[Path]:
    """A home for a test's own cluster, which is stopped afterwards in any case."""
    try:
        yield tmp_path
    finally:
        lifecycle.down(tmp_path)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that answers slowly does its work all the same."""
    monkeypatch.setattr(health, "_LIMITS", PATIENT)


@pytest.fixture
def eventually() -> Eventually:
    """Wait until a condition holds, or fail in time; a daemon that is silent for now is asked again."""

    def wait(condition: Callable[[], object], seconds: float = 240.0) -> None:
        begun = time.monotonic()
        while True:
            with suppress(NoAnswer):
                if condition():
                    return
            waited = time.monotonic() - begun
            assert waited < seconds, f"still not so after {seconds} s"
            time.sleep(pause_after(waited))

    return wait


@pytest.fixture(scope="module")
def platform(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A service with its submitter, and one user."""
    with platform_of(cluster, tmp_path_factory.mktemp("platform")) as made:
        yield made
