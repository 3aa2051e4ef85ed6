"""What nodes are judged by when a task gets its node, read from a real service in few calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.wire.client import InfoClient
from infosvc.wire.connection import Answer
from infosvc.wire.records import Kind, Producer
from jobs.submitter.cluster import judging_values
from tests.jobs.conftest import TOKEN

POLICY = """
first.score = free higher 0..1
program.score = speed:{program} higher 0..10
program.filter = free >= 0.3
"""


class Counting(InfoClient):
    """Counts what is read of values."""

    calls = 0

    def _send(self, method: str, path: str, *how: Any, **more: Any) -> Answer:
        self.calls += method == "GET" and path.startswith("/data")
        return super()._send(method, path, *how, **more)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Counting]:
    """Of a service that knows the plug-in's settings, a node, and one of the two names that they judge by."""
    policy = tmp_path / "policy.properties"
    policy.write_text(POLICY)
    settings = Settings(database=f"sqlite:///{tmp_path}/infosvc.db", token=TOKEN, policy_file=str(policy))
    server = Server(settings, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    with Counting(server.url, TOKEN) as made:
        made.put_node("n1", "127.0.0.1:9")
        write(made, "free", 0.5)
        yield made
    server.stop()
    thread.join()


def write(client: InfoClient, name: str, value: float) -> None:
    client.put_producer(Producer(name, "", 60, kind=Kind.PROGRAM))
    client.put_value(name, "n1", value)


def read(client: InfoClient) -> list[tuple[str, float]]:
    return [(one.data_name, one.number()) for one in judging_values(client, "net")]


def test_all_names_are_read_in_one_call(client: Counting) -> None:
    write(client, "speed:net", 4)

    assert read(client) == [("free", 0.5), ("speed:net", 4.0)]
    assert client.calls == 1


def test_a_name_under_which_nothing_is_registered_hides_no_other(client: Counting) -> None:
    assert read(client) == [("free", 0.5)]
