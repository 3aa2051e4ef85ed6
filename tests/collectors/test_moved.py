"""An agent that was taken for lost and lives on gives up what runs elsewhere by then."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Producer, Report, Role, Scope

TOKEN = "a-token-of-the-tests"


@contextmanager
def reporting(service: InfoClient, node_name: str) -> Iterator[None]:
    """The reports of a node without an agent, which would be taken for lost itself while the test waits for another."""
    over = threading.Event()

    def report() -> None:
        for sequence in count(1):
            with suppress(InfoError):
                service.report(node_name, Report("boot", sequence))
            if over.wait(0.2):
                return

    thread = threading.Thread(target=report)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_frozen_agent_that_comes_back_stops_what_was_moved_meanwhile(
    tmp_path: Path, serving: Any, make_node: Any, wait_for: Callable[[Callable[[], Any]], Any]
) -> None:
    with serving(tmp_path, lost_after=12.0) as url, InfoClient(url, TOKEN, 60) as service:
        service.put_node("n1", "127.0.0.1:1")
        node = make_node(url, service.create_token("agent of n1", Role.AGENT, node_name="n1")[1])
        service.put_node("n1", f"127.0.78.11:{node.port}")
        assert node.launch().returncode == 0
        service.put_producer(Producer("dist", node.script("dist.sh", "echo 1"), 0.2, scope=Scope.CLUSTER))
        wait_for(lambda: [found.state for found in service.nodes()] == ["ready"])
        service.put_slot("*", "dist", running=True)
        wait_for(lambda: any(datum.data_value for datum in service.data("dist")))
        service.put_node("n2", "127.0.0.1:1")

        def has_moved() -> bool:
            return [slot.data_name for slot in service.slots("n2").slots] == ["dist"]

        def age() -> float:
            return next(datum.age or 0.0 for datum in service.data("dist", node="n1"))

        os.kill(node.pid, signal.SIGSTOP)
        with reporting(service, "n2"):
            try:
                wait_for(has_moved)
            finally:
                os.kill(node.pid, signal.SIGCONT)
            assert service.slots("n1").slots == ()
            version = service.slots("n1").version
            wait_for(lambda: node.call("GET", "/healthz")[1]["wanted_version"] == version)
            wait_for(lambda: next(found.state for found in service.nodes() if found.node_name == "n1") == "ready")
            before = age()
            # A slot that ran on would bring a value each 0.2 s.
            wait_for(lambda: has_moved() and age() > before + 2)
