"""What the agent's server does with callers who have no business with it, or take their time."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from collectors.agent.api import MAX_CONNECTIONS, NOTICE, AgentServer, Calls
from infosvc.wire.signature import sign

Wait = Callable[[Callable[[], Any]], Any]

HASH = hashlib.sha256(b"a-token").hexdigest()
HEALTH = b"GET /healthz HTTP/1.1\r\n\r\n"


@pytest.fixture
def server() -> Iterator[AgentServer]:
    """A server that is asked, to which nothing is new."""
    calls = Calls(lambda: {"node_name": "n1"}, lambda: None, lambda _: [])
    made = AgentServer(("127.0.0.1", 0), "a-token", calls)
    made.patience = 60
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def caller(server: AgentServer, said: bytes = b"") -> socket.socket:
    connection = socket.create_connection(server.server_address[:2], timeout=60)  # type: ignore[arg-type]
    connection.sendall(said)
    return connection


def answered(connection: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    said = b""
    try:
        while chunk := connection.recv(4096):
            said += chunk
    except ConnectionResetError:
        pass
    return said


def test_who_has_no_signature_is_turned_away_before_a_body_is_read(server: AgentServer) -> None:
    head = b"POST /api/v1/notice HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"
    with caller(server, head) as connection:  # and the body never comes
        answer = answered(connection)

    assert answer.startswith(b"HTTP/1.1 401")
    assert b"Connection: close" in answer


def test_one_connection_may_ask_more_than_once(server: AgentServer) -> None:
    with caller(server, HEALTH + HEALTH + HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) as connection:
        assert answered(connection).count(b"HTTP/1.1 200") == 3


def test_beyond_a_few_connections_callers_are_hung_up_on(server: AgentServer, wait_for: Wait) -> None:
    with ExitStack() as idle:
        for _ in range(MAX_CONNECTIONS):
            idle.enter_context(caller(server))
        with caller(server, HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) as connection:
            assert answered(connection) == b""

    def served() -> bool:
        with caller(server, HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) as connection:
            return b"200 OK" in answered(connection)

    wait_for(served)


@pytest.mark.parametrize("begun", ["", "GET /healthz HTTP/1.1\r\n", "notice"], ids=["nothing", "head", "body"])
def test_a_request_that_comes_a_byte_at_a_time_has_a_deadline(server: AgentServer, begun: str, wait_for: Wait) -> None:
    signed = f"POST {NOTICE} HTTP/1.1\r\nContent-Length: 1000\r\nAuthorization: {sign(HASH, 'POST', NOTICE)}\r\n\r\n"
    said = (signed if begun == "notice" else begun).encode()
    server.patience = 0.3
    with caller(server, said) as connection:
        connection.settimeout(0.02)

        def hung_up() -> bool:
            try:
                connection.sendall(b"x")
                return connection.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_for(hung_up)
