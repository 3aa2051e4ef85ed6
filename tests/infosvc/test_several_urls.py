"""A client that knows several addresses of services, of which one is active."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from infosvc.http import follower as follower_module
from infosvc.http.follower import Follower
from infosvc.settings import Settings
from infosvc.state.claim import Turn
from infosvc.wire import connection
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotReady, Unreachable
from infosvc.wire.records import Producer, Role
from tests.infosvc.conftest import PATIENCE_SECONDS, TOKEN, Served, serving
from tests.infosvc.test_tls import Authority
from tests.ports import free_port

if TYPE_CHECKING:
    from pathlib import Path

CPU = Producer("cpu", "x", 60.0)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is asked first is waited for half of the client's patience, and a follower waits for the active one."""
    monkeypatch.setattr(connection, "FROZEN_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(follower_module, "RELAY_SECONDS", PATIENCE_SECONDS)


class _NoTurn:
    """The turn of a follower, which comes when the test has ended."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def has_come(self) -> bool:
        return self.ended.is_set()


@contextmanager
def _following(url: str, **settings: Any) -> Iterator[str]:
    """The address of a service that follows the one at `url`."""
    turn = _NoTurn()
    follower = Follower(Settings(token=TOKEN, shared_with=url, **settings), "127.0.0.1", 0, cast("Turn", turn))
    thread = threading.Thread(target=follower.run)
    thread.start()
    try:
        yield follower.url
    finally:
        turn.ended.set()
        thread.join()


@contextmanager
def _silent() -> Iterator[tuple[str, socket.socket]]:
    """An address where connections wait for ever, as with a process that stands still; and its socket."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", listener


def _count_waiting(listener: socket.socket) -> int:
    """How many connections have come that nobody has taken yet."""
    listener.setblocking(False)
    count = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


@pytest.fixture
def active(tmp_path: Path) -> Iterator[Served]:
    """A service that is active."""
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}") as served:
        yield served


def _nobody() -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize("retries", [0, 2])
def test_whoever_answers_is_called_first_from_then_on(active: Served, retries: int) -> None:
    with InfoClient(f"{_nobody()}, {active.url}/", TOKEN, retries=retries) as client:
        client.create_token("reader", Role.READER)  # which may not be made twice
        client.put_producer(CPU)
        assert client._connections._at == 1
        assert [one.data_name for one in client.producers()] == ["cpu"]
    assert [token.name for token in active.client.tokens()].count("reader") == 1


def test_what_a_follower_refuses_is_asked_of_the_active_service_once(active: Served) -> None:
    with (
        _following(active.url) as follower,
        InfoClient(f"{follower},{active.url}", TOKEN, PATIENCE_SECONDS, retries=0) as client,
    ):
        assert client.producers() == []  # which the follower passes on
        assert client._connections._at == 0
        client.create_token("reader", Role.READER)
        assert client._connections._at == 1
    assert [token.name for token in active.client.tokens()].count("reader") == 1


def test_both_services_may_speak_https(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    cert, key = authority.issue("service")
    tls: dict[str, Any] = {"tls_cert": str(cert), "tls_key": str(key), "agent_ca": str(authority.file)}
    with (
        serving(f"sqlite:///{tmp_path / 'infosvc.db'}", **tls) as active,
        _following(active.url, **tls) as follower,
        InfoClient(f"{follower},{active.url}", TOKEN, ca_file=authority.file) as client,
    ):
        assert follower.startswith("https:")
        assert client.producers() == []
        client.put_producer(CPU)
        assert client._connections._at == 1


def test_events_come_from_the_active_service(active: Served) -> None:
    with (
        _following(active.url) as follower,
        InfoClient(f"{_nobody()},{follower},{active.url}", TOKEN) as client,
        client.events(types=["producer"]) as events,
    ):
        active.client.put_producer(CPU)
        assert next(iter(events)).data["data_name"] == "cpu"


def test_a_service_that_stands_still_leaves_time_for_the_other_one(
    active: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "FROZEN_SECONDS", 6.0)
    with (
        _silent() as (frozen, listener),
        InfoClient(f"{frozen},{active.url}", TOKEN, timeout=120.0, retries=0) as client,
    ):
        began = time.monotonic()
        client.put_producer(CPU)
        assert time.monotonic() - began >= 5.9
        assert _count_waiting(listener) == 1
        assert [one.data_name for one in client.producers()] == ["cpu"]
        assert _count_waiting(listener) == 0, "it is asked first no more"


@pytest.mark.parametrize(("patience", "seconds"), [(12.0, 6.0), (600.0, PATIENCE_SECONDS)])
def test_each_of_several_services_gets_half_of_the_patience_at_first_but_not_too_much(
    patience: float, seconds: float
) -> None:
    connections = connection.Connections("http://a:1,http://b:1", patience)
    for at in (0, 1):
        tried = connection._Try(connection.Call("GET", "/"), at, attempt=at, reached=False, give_up=0.0)
        assert connections._seconds(tried) == seconds


def test_what_may_have_been_done_is_not_done_again_elsewhere(active: Served) -> None:
    before = len(active.client.tokens())
    with _silent() as (frozen, _), InfoClient(f"{frozen},{active.url}", TOKEN, timeout=0.5) as client:
        with pytest.raises(Unreachable):
            client.create_token("reader", Role.READER)
        assert len(active.client.tokens()) == before


def test_when_nobody_is_active_it_is_said_when_time_is_over() -> None:
    dead = _nobody()
    with _following(dead) as follower:
        said = pytest.raises(Unreachable, match=f"at {follower},{dead} does not answer")
        with InfoClient(f"{follower},{dead}", TOKEN, timeout=30.0, retries=0) as client, said:
            client.put_producer(CPU)
        with InfoClient(f"{dead},{follower}", TOKEN, timeout=3.0) as client, pytest.raises((NotReady, Unreachable)):
            client.put_producer(CPU)


def test_addresses_below_different_paths_are_refused() -> None:
    with pytest.raises(Unreachable, match="below different paths"):
        InfoClient("http://a:1/x,http://b:1/y")
