"""What an agent sends to another node that measures the way between them: within limits, whoever asks."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from collectors.agent import probe
from collectors.agent.api import AgentServer, Calls
from collectors.agent.probe import BUDGET_BYTES, MOST_BYTES, Busy, Probes, chunks, patience_seconds
from infosvc.wire.errors import InvalidInput

Wait = Callable[[Callable[[], Any]], Any]
TOKEN = "a-token-of-the-tests"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentServer]:
    """A server that is asked, to which nothing is new; it hangs up on nobody because the machine is busy."""
    monkeypatch.setattr(probe, "SLOWEST_BYTES_PER_SECOND", 1000)
    made = AgentServer(("127.0.0.1", 0), TOKEN, Calls(dict, lambda: None, lambda _: []))
    made.patience = 60
    thread = threading.Thread(target=made.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def asked(server: AgentServer, *queries: str) -> list[tuple[int, http.client.HTTPMessage, bytes]]:
    """The answers on one connection, where each answer is over before the next begins."""
    answers = []
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)) as connection:
        for query in queries:
            connection.request("GET", f"/api/v1/probe{query}")
            response = connection.getresponse()
            answers.append((response.status, response.headers, response.read()))
    return answers


def reader_that_takes_nothing(server: AgentServer) -> socket.socket:
    """A caller who asks for much and then does not read; neither kernel has room for all of it."""
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", server.server_port))
    connection.sendall(f"GET /api/v1/probe?bytes={MOST_BYTES} HTTP/1.1\r\n\r\n".encode())
    return connection


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 512 * 1024, MOST_BYTES])
def test_as_many_bytes_come_as_were_asked_for(server: AgentServer, size: int) -> None:
    ((status, headers, body),) = asked(server, f"?bytes={size}")

    assert (status, len(body)) == (200, size)
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Length"] == str(size)


def test_the_bytes_are_made_for_each_answer_and_cannot_be_pressed_together(server: AgentServer) -> None:
    (_, _, first), (_, _, second) = asked(server, "?bytes=65536", "?bytes=65536")

    assert first != second
    assert len(set(first)) == 256
    assert TOKEN.encode() not in first + second


@pytest.mark.parametrize(
    "query",
    [
        *("", "?", "?bytes=", "?bytes=0", "?bytes=-1", "?bytes=x", "?bytes=1e3", "?bytes=%D9%A3"),
        *(f"?bytes={MOST_BYTES + 1}", "?bytes=" + "9" * 5000, "?size=10", "?bytes=10;20"),
    ],
)
def test_a_size_that_is_none_is_refused_with_what_is_allowed(server: AgentServer, query: str) -> None:
    ((status, _, body),) = asked(server, query)

    error = json.loads(body)["error"]
    assert (status, error["code"], error["field"]) == (422, "invalid_input", "bytes")
    assert f"from 1 to {MOST_BYTES}" in error["message"]


def test_one_connection_measures_more_than_once(server: AgentServer) -> None:
    answers = asked(server, "?bytes=1000", "?bytes=70000", "?bytes=0", "?bytes=3")

    assert [(status, len(body)) for status, _, body in answers if status == 200] == [
        (200, 1000),
        (200, 70_000),
        (200, 3),
    ]


def test_only_one_probe_is_under_way_and_its_end_makes_room(server: AgentServer, wait_for: Wait) -> None:
    with reader_that_takes_nothing(server) as slow:
        assert slow.recv(1) == b"H"
        ((status, headers, body),) = asked(server, "?bytes=1")
        assert (status, headers["Retry-After"]) == (429, "1")
        assert json.loads(body)["error"]["code"] == "too_many_requests"

    wait_for(lambda: asked(server, "?bytes=1")[0][0] == 200)


def test_who_does_not_take_what_was_asked_for_is_hung_up_on(
    server: AgentServer, monkeypatch: pytest.MonkeyPatch, wait_for: Wait
) -> None:
    monkeypatch.setattr(probe, "SLOWEST_BYTES_PER_SECOND", 5 * MOST_BYTES)
    with reader_that_takes_nothing(server) as slow:
        assert slow.recv(1) == b"H"
        wait_for(lambda: asked(server, "?bytes=1")[0][0] == 200)


@pytest.mark.parametrize("size", [1, 128 * 1024, 512 * 1024, MOST_BYTES])
def test_who_asks_again_and_again_and_takes_nothing_holds_the_place_for_little_more_than_half_of_the_time(
    size: int,
) -> None:
    assert BUDGET_BYTES // size * patience_seconds(size) <= 32


def test_after_a_minute_s_bytes_there_is_a_rest_whoever_asks(server: AgentServer) -> None:
    # Time goes on while this is asked, so a little more than the budget may come.
    answers = asked(server, *[f"?bytes={MOST_BYTES}"] * (3 * BUDGET_BYTES // MOST_BYTES))

    refused = [(status, headers) for status, headers, _ in answers if status != 200]
    assert BUDGET_BYTES // MOST_BYTES <= len(answers) - len(refused) < len(answers)
    assert {status for status, _ in refused} == {429}
    assert all(1 <= int(headers["Retry-After"]) <= 60 for _, headers in refused)


def test_the_budget_comes_back_with_time_and_never_grows_beyond_a_minute_s() -> None:
    now = [1000.0]
    probes = Probes(lambda: now[0])
    full = f"bytes={MOST_BYTES}"

    def grants() -> int:
        count = 0
        while True:
            try:
                with probes.grant(full):
                    count += 1
            except Busy as busy:
                last.append(busy.retry_after)
                return count

    last: list[int] = []
    most = BUDGET_BYTES // MOST_BYTES
    assert grants() == most
    now[0] += last[-1]
    assert grants() == 1
    now[0] += 30
    assert grants() == most // 2
    now[0] += 86_400
    assert grants() == most


def test_a_refused_size_costs_nothing_and_keeps_no_place() -> None:
    probes = Probes(lambda: 0.0)
    for _ in range(3):
        with pytest.raises(InvalidInput), probes.grant("bytes=0"):
            pass
    with probes.grant("bytes=1") as size:
        assert size == 1
    with pytest.raises(RuntimeError), probes.grant("bytes=1"):
        raise RuntimeError("the caller went away")
    with probes.grant("bytes=1") as size:
        assert size == 1


def test_what_else_an_agent_answers_still_needs_a_signature(server: AgentServer) -> None:
    for path, status in {"/api/v1/slots/x/log": 401, "/api/v1/probe/slots/x/log": 404}.items():
        with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)) as connection:
            connection.request("GET", path)
            assert connection.getresponse().status == status


@pytest.mark.parametrize("size", [1, 65_536, 200_001])
def test_chunks_are_small_and_complete(size: int) -> None:
    sizes = [len(chunk) for chunk in chunks(size)]

    assert sum(sizes) == size
    assert max(sizes) <= 65_536
