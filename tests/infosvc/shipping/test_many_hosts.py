"""Fifty machines at once, with some among them that cannot be had."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infosvc.shipping.bundle import Bundle
from infosvc.shipping.remote import MAX_HOSTS_AT_ONCE, Installed, Machine, RemoteOptions, on_hosts
from infosvc.wire.errors import Conflict, InfoError, Unreachable

if TYPE_CHECKING:
    from tests.infosvc.shipping.conftest import Sshd

PATIENCE_SECONDS = 600.0
FIFTY = tuple(f"127.0.78.{number}" for number in range(1, 51))
SILENT, IMPOSTOR, CLOSED = "127.0.79.1", "127.0.79.2", "127.0.79.3"


@pytest.fixture
def fifty(tmp_path: Path, more_sshd: type[Sshd]) -> Iterator[Sshd]:
    """Fifty machines, and one more whose host key is not the known one."""
    (tmp_path / "fifty").mkdir()
    with more_sshd(tmp_path / "fifty", (*FIFTY, IMPOSTOR)) as server:
        yield server


@pytest.fixture
def reaching(fifty: Sshd, agents: Path, ending: Callable[[Path], None]) -> Iterator[RemoteOptions]:
    """How to reach them; their agents are ended with the test."""
    options = fifty.options(agents)
    assert options.known_hosts
    lines = options.known_hosts.read_text().splitlines()
    stranger = fifty.keygen(fifty.directory / "stranger")
    kept = [line if IMPOSTOR not in line else f"[{IMPOSTOR}]:{fifty.port} {stranger}" for line in lines]
    options.known_hosts.write_text("\n".join(kept) + "\n")
    yield options

    ending(agents)


@contextmanager
def silent_until(over: threading.Event, port: int) -> Iterator[None]:
    """A machine that takes a connection, says nothing and hangs up in the end."""

    def serve() -> None:
        taken, _ = listener.accept()
        with taken:
            over.wait(PATIENCE_SECONDS)

    with socket.create_server((SILENT, port)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_fifty_hosts_are_worked_on_at_once() -> None:
    together = threading.Barrier(len(FIFTY), timeout=60)

    results = on_hosts(FIFTY, lambda _host: together.wait())

    assert MAX_HOSTS_AT_ONCE == 50
    assert sorted(results.values()) == list(range(50))  # type: ignore[type-var]


@pytest.mark.timeout(900)  # on a busy machine fifty agents take minutes
def test_a_host_that_never_answers_keeps_no_other_one_waiting(
    fifty: Sshd, reaching: RemoteOptions, bundle: Bundle, agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infosvc.shipping.ssh.CONNECT_SECONDS", PATIENCE_SECONDS)
    order: list[str] = []
    others_are_done = threading.Event()

    def note(host: str, _result: Installed | InfoError) -> None:
        order.append(host)
        if len(order) == len(FIFTY) + 2:
            others_are_done.set()

    def install(host: str) -> Installed:
        with Machine(host, reaching) as machine:
            return machine.install(bundle, "http://127.0.0.1:9", lambda name, _address: f"a-token-for-{name}")

    with silent_until(others_are_done, fifty.port):
        results = on_hosts((SILENT, IMPOSTOR, CLOSED, *FIFTY), install, note)

    assert list(results) == [SILENT, IMPOSTOR, CLOSED, *FIFTY]
    assert {host for host, result in results.items() if isinstance(result, InfoError)} == {SILENT, IMPOSTOR, CLOSED}
    assert isinstance(results[IMPOSTOR], Conflict)
    assert "another host key" in str(results[IMPOSTOR])
    assert isinstance(results[CLOSED], Unreachable)
    assert isinstance(results[SILENT], Unreachable)
    assert order[-1] == SILENT
    for host in FIFTY:
        told = json.loads((agents / host / "settings.json").read_text())
        assert (told["node_name"], (agents / host / "token").read_text()) == (host, f"a-token-for-{host}\n")
    assert not (agents / IMPOSTOR).exists()

    def push(host: str) -> Installed:
        with Machine(host, reaching) as machine:
            return machine.push(bundle)

    assert {result.changed for result in on_hosts(FIFTY, push).values() if isinstance(result, Installed)} == {False}
