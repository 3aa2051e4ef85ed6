"""The dashboard in a real browser, on a real service that knows three nodes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run
from tests.infosvc.conftest import TOKEN, Served
from tests.web.browser import Tabs, chromium
from tests.web.invented import Invented

NODES = ("n1", "n2", "n3")
UNITS = {
    "cpu_count": "cpus",
    "memory_total_bytes": "bytes",
    "memory_available_bytes": "bytes",
    "disk_total_bytes": "bytes",
    "disk_free_bytes": "bytes",
}


@dataclass(frozen=True)
class Known:
    """A service that knows something: its address, a client that may do everything, and a token that may only read."""

    url: str
    client: InfoClient
    viewer: str


# Not for the whole session: while it runs, its event loop stands in the way of tests that have one of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a file."""
    with chromium() as found:
        yield found


@pytest.fixture
def tabs(browser: Browser) -> Iterator[Tabs]:
    """tabs.open(URL, PLACE): pages that must make no mistake until the test ends."""
    made = Tabs(browser)
    yield made
    made.close()


@pytest.fixture
def board() -> Invented:
    """What the service is told of jobs and of HDFS."""
    return Invented()


@pytest.fixture
def served(tmp_path: Path, board: Invented) -> Iterator[Served]:
    """A running service that knows nothing but its board, and in which no node grows stale while a test looks at it."""
    settings = Settings(
        f"sqlite:///{tmp_path / 'infosvc.db'}", TOKEN, heartbeat=600.0, lost_after=3600.0, patience=60.0
    )
    server = Server(settings, "127.0.0.1", 0, others=[board.calls()])
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Served(server.url, server)
    finally:
        server.stop()
        thread.join(120)
        assert not thread.is_alive()


@pytest.fixture
def known(served: Served) -> Known:
    """Three nodes, of which two have reported: n1 all is well, n2 has a failed and a resting slot."""
    client = served.client
    client.put_producer(Producer("cpu_free_ratio", "scripts/cpu_free_ratio.sh", 2.0, unit="ratio", ttl=600, keep=600))
    client.put_producer(Producer("load_1m", "scripts/load_1m.sh", 2.0, unit="processes", ttl=600, help="Load."))
    client.put_producer(Producer("gpu_usage", "scripts/gpu_usage.sh", 5.0, ttl=600))
    perf = ("cpu_free_ratio",)
    client.put_producer(Producer("perf_cpu", "processors/perf_cpu.py", 2.0, Kind.PROCESSOR, ttl=600, inputs=perf))
    client.put_producer(Producer("rack", "", 60.0, Kind.PROGRAM, ttl=600))
    for name in NODES:
        client.put_node(name, "127.0.0.1:9")
    for name in NODES[:2]:
        client.put_slot(name, "cpu_free_ratio", True)
        client.put_slot(name, "load_1m", True, 7.0)
    client.put_slot("n2", "gpu_usage", True)
    client.report("n1", Report("b", 1, "1.0", (ran("cpu_free_ratio", "0.25"), ran("load_1m", "3.5"))))
    resting = Run("gpu_usage", Outcome.QUARANTINED, 0.1, None, "ten failures in a row", exit_status=1)
    failed = Run("load_1m", Outcome.FAILED, 0.1, None, "no file <b>/proc/loadavg</b>", exit_status=1)
    client.report("n2", Report("b", 1, "1.0", (ran("cpu_free_ratio", "0.9312"), failed, resting)))
    client.put_value("rack", "n1", "r7")
    return Known(served.url, client, client.create_token("viewer", Role.READER)[1])


@pytest.fixture
def admin(tabs: Tabs, known: Known) -> Page:
    """The first page, before somebody who may do everything."""
    return tabs.open(known.url, token=TOKEN)


@pytest.fixture
def viewer(tabs: Tabs, known: Known) -> Page:
    """The first page, before somebody who may only read."""
    return tabs.open(known.url, token=known.viewer)


def ran(data_name: str, value: str) -> Run:
    """A run that went well."""
    return Run(data_name, Outcome.OK, 0.1, value, exit_status=0)


def tell(client: InfoClient, node: str, batch: int, cpu_free: float, disk_free: float) -> None:
    """What a node of 8 cores, 16 GB and 1 TB reports."""
    for name, unit in UNITS.items():
        client.put_producer(Producer(name, "scripts/any.sh", 2.0, unit=unit, ttl=600))
        client.put_slot(node, name, True)
    values = (8, 16e9, 8e9, 1e12, 1e12 * disk_free)
    runs = [ran(name, str(value)) for name, value in zip(UNITS, values, strict=True)]
    client.report(node, Report("b", batch, "1.0", (ran("cpu_free_ratio", str(cpu_free)), *runs)))
