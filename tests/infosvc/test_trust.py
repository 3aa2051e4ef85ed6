"""What the service does not let happen: too many calls, too much in one, words from its inside, wrong addresses."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from infosvc.access.rate_limit import MOST_KEYS, RateLimit
from infosvc.wire.records import Producer, Role

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

REPORT = {"boot": "b", "sequence": 1, "runs": []}


@pytest.fixture
def lite(sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Served]:
    """A service with low limits, one node and one name, whose clock tests turn."""
    with serve(sqlite_url, hands, calls_per_second=10, refusals_per_second=2, max_body=20_000) as service:
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_producer(Producer("cpu", "x", 1))
        hands.turn(60)
        yield service


def test_a_bucket_lets_two_seconds_worth_through_and_then_one_at_a_time() -> None:
    rates = RateLimit(5)
    assert [rates.take("a", 100.0) for _ in range(10)] == [0] * 10
    assert rates.take("a", 100.0) == pytest.approx(0.2)
    assert rates.wait("a", 100.1) == pytest.approx(0.1)
    assert rates.take("b", 100.0) == 0
    assert [rates.take("a", 100.21) > 0 for _ in range(2)] == [False, True]
    assert [rates.take("a", 200.0) > 0 for _ in range(11)] == [False] * 10 + [True]


def test_a_bucket_for_less_than_one_call_a_second_still_lets_one_through() -> None:
    rates = RateLimit(0.1)
    assert [rates.take("a", 0.0) > 0 for _ in range(2)] == [False, True]
    assert rates.take("a", 10.1) == 0


def test_no_limit_is_no_limit() -> None:
    rates = RateLimit(0)
    assert not any(rates.take("a", 0.0) for _ in range(1000))


def test_buckets_of_many_callers_take_bounded_memory() -> None:
    rates = RateLimit(1)
    for number in range(3 * MOST_KEYS):
        rates.take(str(number), 0.0)
        assert len(rates._full_at) <= MOST_KEYS
    for number in range(MOST_KEYS - len(rates._full_at)):
        rates.take(f"early {number}", 0.0)
    assert rates.take("busy", 100.0) == rates.take("busy", 100.0) == 0
    assert rates.take("busy", 100.0) > 0, "a busy caller is not forgiven when idle ones are forgotten"


def test_one_caller_over_its_rate_must_wait_and_others_need_not(lite: Served, hands: Hands) -> None:
    _, text = lite.client.create_token("a", Role.READER)
    assert {lite.ask("GET", "/api/v1/nodes", None, text).status for _ in range(20)} == {200}
    answer = lite.ask("GET", "/api/v1/nodes", None, text)
    assert (answer.status, answer.error["code"]) == (429, "too_many_requests")
    assert int(answer.headers["retry-after"]) == 1
    assert lite.ask("GET", "/api/v1/data/cpu", None, text).status == 429, "the fast lane counts the same calls"
    assert lite.ask("GET", "/api/v1/nodes").status == 200
    assert lite.ask("GET", "/api/v1/nodes", None, None).status == 200
    hands.turn(0.1)
    assert [lite.ask("GET", "/api/v1/data/cpu", None, text).status for _ in range(2)] == [200, 429]


def test_callers_without_a_token_are_counted_by_address(lite: Served) -> None:
    assert {lite.ask("GET", "/healthz", None, None).status for _ in range(20)} == {200}
    assert lite.ask("GET", "/healthz", None, None).status == 429
    assert lite.ask("GET", "/api/v1/nodes", None, None).status == 429


def test_whoever_guesses_tokens_must_wait_and_those_who_are_known_need_not(lite: Served, hands: Hands) -> None:
    _, text = lite.client.create_token("a", Role.ADMIN)
    guesses = [lite.ask("GET", "/api/v1/data/cpu", None, f"nw_admin_{number}") for number in range(6)]
    assert [guess.status for guess in guesses] == [401] * 4 + [429] * 2
    assert guesses[-1].headers["retry-after"] == "1"
    assert lite.ask("GET", "/api/v1/nodes", None, text).status == 429, "a right guess is not seen to be one"
    assert lite.ask("GET", "/api/v1/nodes").status == 200
    hands.turn(0.5)
    assert lite.ask("GET", "/api/v1/nodes", None, text).status == 200


def _send(service: Served, method: str, path: str, parts: list[bytes], chunked: bool) -> tuple[int, bytes]:
    """A call of a body of any size; the service may answer before it has read all of it."""
    where = urlsplit(service.url)
    length = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(sum(map(len, parts))))
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
    try:
        connection.putrequest(method, path)
        connection.putheader("Authorization", "Bearer a-token-for-the-tests")
        connection.putheader(*length)
        connection.endheaders()
        with suppress(BrokenPipeError, ConnectionResetError):
            for part in [*parts, b""] if chunked else parts:
                connection.send(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/api/v1/data/cpu/n1", "/api/v1/nodes/n1/report"])
def test_a_body_of_ten_megabytes_is_refused(lite: Served, path: str) -> None:
    # It is whole long before its end, so that reading a part of it alone would do.
    body = b'{"data_value": "1", "boot": "b", "sequence": 1, "runs": []}' + b" " * 10_000_000
    parts = [body[start : start + 50_000] for start in range(0, len(body), 50_000)]
    status, said = _send(lite, "POST" if path.endswith("report") else "PUT", path, parts, chunked=False)
    assert (status, json.loads(said)["error"]["code"]) == (413, "too_large")
    assert b"20000 bytes" in said
    assert lite.client.data("cpu") == []


@pytest.mark.parametrize("path", ["/api/v1/data/cpu/n1", "/api/v1/nodes/n1/report"])
def test_a_body_in_chunks_is_not_taken(lite: Served, path: str) -> None:
    method, body = ("POST", REPORT) if path.endswith("report") else ("PUT", {"data_value": "1"})
    text = json.dumps(body).encode()
    status, said = _send(lite, method, path, [text[:9], text[9:]], chunked=True)
    assert (status, json.loads(said)["error"]["code"]) == (411, "length_required")


@pytest.mark.parametrize("depth", [33, 9_000])
def test_a_body_that_is_nested_too_deep_is_refused(lite: Served, depth: int) -> None:
    nested = "[" * (depth - 1) + "]" * (depth - 1)
    for method, path in [("PUT", "/api/v1/producers/a"), ("POST", "/api/v1/tokens"), ("PUT", "/api/v1/data/cpu/n1")]:
        answer = lite.ask(method, path, f'{{"unit": {nested}}}')
        assert (answer.status, answer.error["code"]) == (400, "invalid_input"), path
    fields = json.dumps(REPORT)[1:-1]
    answer = lite.ask("POST", "/api/v1/nodes/n1/report", f'{{{fields}, "more": {nested}}}')
    # A report's own fields cannot nest, and what else it brings is passed over, which has a limit too.
    assert answer.status == (200 if depth == 33 else 400), answer.text


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", '"nan"', '"-inf"', '" Infinity "'])
def test_no_number_that_is_none_gets_in(lite: Served, number: str) -> None:
    ran = f'{{"data_name": "cpu", "outcome": "ok", "duration": 1, "value": {number}}}'
    for method, path, body in [
        ("PUT", "/api/v1/data/cpu/n1", f'{{"data_value": {number}}}'),
        ("PUT", "/api/v1/producers/b", f'{{"cmd": "x", "time_max": {number}}}'),
        ("POST", "/api/v1/tokens", f'{{"name": "a", "role": "reader", "expires_in": {number}}}'),
        ("POST", "/api/v1/nodes/n1/report", f'{{"boot": "b", "sequence": 1, "runs": [{ran}]}}'),
    ]:
        assert lite.ask(method, path, body).status in (400, 422), path
    assert lite.client.data("cpu") == []


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=-1", "limit=100001", "limit=x", "since=-1", "since=1e3", "since=%C2%B2"]
)
def test_rows_of_one_answer_are_limited(lite: Served, query: str) -> None:
    answer = lite.ask("GET", f"/api/v1/audit?{query}")
    assert (answer.status, answer.error["field"]) == (422, query.partition("=")[0])
    assert len(lite.ask("GET", "/api/v1/audit?limit=1").json["entries"]) == 1


@pytest.mark.parametrize(
    ("planted", "method", "path"),
    [
        ("infosvc.state.views.Latest.nodes", "GET", "/api/v1/nodes"),
        ("infosvc.state.current_values.CurrentValues.answer", "GET", "/api/v1/data/cpu"),
        ("infosvc.data.agent_report._decoder", "POST", "/api/v1/nodes/n1/report"),
        ("infosvc.access.authenticator.Authenticator._authenticate", "GET", "/api/v1/data/cpu"),
        ("infosvc.state.database.Database.audit", "GET", "/api/v1/audit"),
        ("infosvc.access.tokens.make", "POST", "/api/v1/tokens"),
    ],
)
def test_a_fault_shows_nothing_of_the_inside(
    lite: Served, monkeypatch: pytest.MonkeyPatch, planted: str, method: str, path: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr(planted, fail)
    body = {"name": "a", "role": "reader"} | (REPORT if path.endswith("report") else {})
    answer = lite.ask(method, path, body if method == "POST" else None)
    assert (answer.status, answer.error["code"]) == (500, "fault")
    for word in ("secret", "RuntimeError", "Traceback", "File "):
        assert word not in answer.text


class Listener:
    """Notes which connections come to an address of its own."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.calls = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.calls += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def listeners() -> Iterator[tuple[Listener, Listener]]:
    """Where an agent was enrolled, and where somebody else would have the service call."""
    both = Listener(), Listener()
    yield both
    for listener in both:
        listener.close()


def test_an_agent_is_called_where_an_admin_enrolled_it_and_nowhere_else(
    sqlite_url: str,
    serve: Serving,
    listeners: tuple[Listener, Listener],
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    enrolled, elsewhere = listeners
    with serve(sqlite_url) as lite:
        lite.client.put_node("n1", enrolled.address)
        lite.client.put_producer(Producer("cpu", "x", 1))
        _, text = lite.client.create_token("a", Role.AGENT, "n1")
        headers = {"X-Forwarded-Host": elsewhere.address, "X-Forwarded-For": "127.0.0.9", "Host": elsewhere.address}
        report = REPORT | {"address": elsewhere.address, "agent_version": elsewhere.address}
        assert lite.ask("POST", "/api/v1/nodes/n1/report", report, text, headers).status == 200
        for role, node in [(Role.AGENT, "n1"), (Role.SCHEDULER, None), (Role.PROCESSOR, None), (Role.READER, None)]:
            _, other = lite.client.create_token(role, role, node)
            assert lite.ask("PUT", "/api/v1/nodes/n1", {"address": elsewhere.address}, other).status == 403
        assert [node.address for node in lite.client.nodes()] == [enrolled.address]
        before = enrolled.calls
        slot = {"running": True}
        elsewhere_too = slot | {"address": elsewhere.address}
        assert lite.ask("PUT", "/api/v1/nodes/n1/slots/cpu", elsewhere_too, headers=headers).status == 422
        assert lite.ask("PUT", "/api/v1/nodes/n1/slots/cpu", slot, headers=headers).status == 201
        eventually(lambda: enrolled.calls > before)
        lite.client.delete_node("n1")
    assert elsewhere.calls == 0


def _serve(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "nodewise", "--home", str(tmp_path), "serve", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def _ask(port: int, token: str | None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/api/v1/nodes", headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("words", "anonymous"),
    [((), 200), (("--no-open-reading",), 401), (("--host", "0.0.0.0"), 401), (("--host", "localhost"), 200)],
)
def test_only_a_service_that_no_other_machine_reaches_is_read_without_a_token(
    tmp_path: Path, words: tuple[str, ...], anonymous: int
) -> None:
    process = _serve(tmp_path, *words)
    assert process.stdout and process.stderr
    try:
        line = process.stdout.readline()
        port = int(line.partition(",")[0].rpartition(":")[2])
        assert _ask(port, None) == anonymous
        assert _ask(port, (tmp_path / "service" / "token").read_text().strip()) == 200
    finally:
        process.send_signal(signal.SIGTERM)
        _, warnings = process.communicate(timeout=120)
    assert process.returncode == 0
    assert ("travel unencrypted" in warnings) == ("0.0.0.0" in words)


def test_reading_cannot_be_opened_to_other_machines(tmp_path: Path) -> None:
    process = _serve(tmp_path, "--host", "0.0.0.0", "--open-reading")
    said, error = process.communicate(timeout=120)
    assert (process.returncode, said) == (1, "")
    assert error.startswith("Error: 0.0.0.0 can be reached from other machines") and error.count("\n") == 1
