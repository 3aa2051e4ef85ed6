"""What slow, silent and greedy callers and agents cannot do: take the service's threads, its memory or its end."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from infosvc.access import audit, body_limit
from infosvc.access.body_limit import BodyLimit
from infosvc.core.service import components_of
from infosvc.data.events import Broker, Filter
from infosvc.http.server import Server
from infosvc.settings import Clock, Settings
from infosvc.wire.errors import Conflict, InvalidInput, Malformed, NotReady
from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

ADMIN = "a-token-for-the-tests"
Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture
def lite(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service on SQLite with one node and one name, which nobody reads without a token; slow bodies stay slow."""
    with serve(sqlite_url, open_reading=False, body_seconds=120.0) as service:
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_producer(Producer("cpu", "x", 1))
        yield service


def _begin(service: Served, stack: ExitStack, head: str, number: int) -> list[socket.socket]:
    """Calls that are begun and stay as they are."""
    where = urlsplit(service.url)
    begun = [
        stack.enter_context(socket.create_connection((str(where.hostname), int(where.port or 0)), 60))
        for _ in range(number)
    ]
    for connection in begun:
        connection.sendall(head.replace("\n", "\r\n").encode())
    return begun


def _status(connection: socket.socket) -> int:
    return int(connection.recv(4096).split()[1])


@pytest.mark.parametrize("call", ["GET /healthz", "GET /api/v1/nodes", "PUT /api/v1/nodes/n2"])
def test_bodies_in_chunks_without_a_token_hold_nobody_up(lite: Served, stack: ExitStack, call: str) -> None:
    begun = _begin(lite, stack, f"{call} HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n5\nhello\n", 70)
    assert lite.ask("GET", "/api/v1/nodes").status == 200
    assert {_status(connection) for connection in begun} <= ({411} if call == "GET /healthz" else {401, 429})


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/nodes", "/api/v1/data/cpu"])
def test_the_body_of_a_read_is_not_waited_for(lite: Served, stack: ExitStack, path: str) -> None:
    head = f"GET {path} HTTP/1.1\nHost: x\nAuthorization: Bearer {ADMIN}\nContent-Length: 100\n\nhello"
    assert [_status(connection) for connection in _begin(lite, stack, head, 3)] == [200] * 3


def test_no_answer_waits_for_the_word_that_a_part_of_it_came(lite: Served, stack: ExitStack) -> None:
    (connection,) = _begin(lite, stack, "GET /healthz HTTP/1.1\nHost: x\n\n", 1)
    assert _status(connection) == 200
    assert _options_of_the_end_towards(connection.getsockname(), socket.TCP_NODELAY) == [1]


def _options_of_the_end_towards(peer: object, option: int) -> list[int]:
    """Of the sockets of this process, in which the service runs too."""
    found = []
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        with suppress(OSError), socket.socket(fileno=os.dup(int(descriptor.name))) as end:
            if end.family == socket.AF_INET and end.getpeername() == peer:
                found.append(end.getsockopt(socket.IPPROTO_TCP, option))
    return found


@pytest.mark.parametrize("call", ["POST /api/v1/nodes/n1/report", "PUT /api/v1/data/cpu/n1"])
def test_slow_bodies_of_one_caller_hold_up_neither_readers_nor_other_writers(
    lite: Served, stack: ExitStack, call: str
) -> None:
    _, token = lite.client.create_token("slow", Role.ADMIN)
    head = f"{call} HTTP/1.1\nHost: x\nAuthorization: Bearer {token}\nContent-Length: 100\n\n{{"
    begun = _begin(lite, stack, head, 66)  # of which two are read, and some wait for 4 s
    assert lite.ask("GET", "/api/v1/nodes").status == 200
    assert lite.ask("GET", "/api/v1/data/cpu").status == 200
    lite.client.report("n1", Report("b", 1))
    refused, deadline = 0, time.monotonic() + 60
    while refused < 64 and time.monotonic() < deadline:
        answered, _, _ = select.select(begun, [], [], 1.0)
        refused += sum(_status(connection) == 503 for connection in answered)
        begun = [connection for connection in begun if connection not in answered]
    assert refused == 64, f"{66 - refused} slow bodies are waited for"


class Slow:
    """Bodies of a BodyLimit that come in until they are told to end."""

    def __init__(self, limit: BodyLimit) -> None:
        self.limit = limit
        self._go_on = threading.Event()
        self._reading = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def begin(self, caller: str) -> None:
        """One more, which has a place when this returns."""
        self._threads.append(threading.Thread(target=self.limit.read, args=(caller, "x", 1, self._read)))
        self._threads[-1].start()
        assert self._reading.acquire(timeout=60)

    def _read(self, _length: int) -> bytes:
        self._reading.release()
        assert self._go_on.wait(60)
        return b"1"

    def end(self) -> None:
        """Let all come in."""
        self._go_on.set()
        for thread in self._threads:
            thread.join(60)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """Bodies of which eight are read at a time."""
    monkeypatch.setattr(body_limit, "PATIENCE_SECONDS", 0.01)
    found = Slow(BodyLimit(32, 0.0))
    yield found
    found.end()


def _read_one(limit: BodyLimit, caller: str, sent: bytes = b"1") -> bytes:
    return limit.read(caller, "x", 1, lambda _: sent)


def test_a_caller_has_two_places_and_one_of_the_last(slow: Slow) -> None:
    for caller in "aabbcc":
        slow.begin(caller)
    with pytest.raises(NotReady, match="come in slowly"):
        _read_one(slow.limit, "a")
    with pytest.raises(NotReady):
        _read_one(slow.limit, "b")
    slow.begin("d")
    with pytest.raises(NotReady):
        _read_one(slow.limit, "d")
    assert _read_one(slow.limit, "e") == b"1"
    slow.end()
    assert [_read_one(slow.limit, "a") for _ in range(3)] == [b"1"] * 3


def test_who_was_slow_gets_a_place_only_while_most_are_free(slow: Slow) -> None:
    for caller in "aabb":
        slow.begin(caller)
    assert {body.caller for body in slow.limit.overdue()} == {"a", "b"}
    slow.end()
    assert _read_one(slow.limit, "a") == b"1"
    for caller in "ccdd":
        slow._go_on.clear()
        slow.begin(caller)
    with pytest.raises(NotReady):
        _read_one(slow.limit, "a")
    assert _read_one(slow.limit, "e") == b"1"


def test_small_bodies_of_many_callers_are_read_at_once_and_need_a_place_only_when_they_do_not_come(
    monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    monkeypatch.setattr(body_limit, "PATIENCE_SECONDS", 0.01)
    slow = Slow(BodyLimit(32, 60.0, small_bytes=1))  # which has eight places
    stack.callback(slow.end)
    for number in range(100):
        slow.begin(f"agent{number}")
    slow.begin("agent0")  # a second one, which takes a place
    assert _read_one(slow.limit, "agent100") == b"1"
    for _ in range(1, body_limit.LOOKS):
        assert slow.limit.overdue() == []
    assert {body.caller for body in slow.limit.overdue()} == {f"agent{number}" for number in range(7, 100)}
    with pytest.raises(NotReady):
        _read_one(slow.limit, "agent99")  # who was slow
    assert _read_one(slow.limit, "agent100") == b"1"


def test_a_body_that_breaks_off_is_refused_and_leaves_its_place(slow: Slow) -> None:
    for _ in range(3):
        with pytest.raises(Malformed, match="after 0 of 1 bytes"):
            _read_one(slow.limit, "a", b"")


def test_each_piece_of_a_long_body_has_its_time_and_all_of_it_a_least_rate() -> None:
    limit, length, looked = BodyLimit(32, 5.0), 4 * body_limit.PIECE_BYTES, [time.monotonic()]

    def read(wanted: int) -> bytes:
        (body,) = limit._bodies
        looked.append(time.monotonic())
        assert min(looked[-2] + 5.0, body.ends_at) <= body.late_at <= looked[-1] + 5.0
        assert body.ends_at - body.begun == 5.0 + length / body_limit.BYTES_PER_SECOND
        return b"x" * wanted

    assert len(limit.read("a", "x", length, read)) == length
    assert len(looked) == 1 + 4


class Trickler:
    """Listens where an agent would, and answers without ever coming to an end."""

    def __init__(self, head: bytes, rest: bytes, pause: float) -> None:
        self._said = head, rest, pause
        self._ended = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.calls = 0
        self._threads = [threading.Thread(target=self._run)]
        self._threads[0].start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.calls += 1
                self._threads.append(threading.Thread(target=self._trickle, args=(connection,)))
                self._threads[-1].start()

    def _trickle(self, connection: socket.socket) -> None:
        head, rest, pause = self._said
        with suppress(OSError), connection:
            connection.sendall(head)
            while not self._ended.wait(pause):
                connection.sendall(rest)

    def close(self) -> None:
        self._ended.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join()


BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "
HEADERS = b"HTTP/1.1 200 OK\r\nX: ", b"x"


@pytest.mark.parametrize("said", [BODY, HEADERS], ids=["body", "headers"])
def test_an_agent_that_trickles_is_given_up_and_holds_up_neither_readers_nor_the_end(
    sqlite_url: str, serve: Serving, stack: ExitStack, said: tuple[bytes, bytes]
) -> None:
    agent = Trickler(*said, pause=0.05)
    stack.callback(agent.close)
    with serve(sqlite_url, notice_timeout=0.4) as service:
        service.client.put_node("n1", agent.address)
        service.client.put_producer(Producer("cpu", "x", 1))
        service.client.put_slot("n1", "cpu", True)
        path = "/api/v1/nodes/n1/slots/cpu/log"
        begun = _begin(service, stack, f"GET {path} HTTP/1.1\nHost: localhost\n\n", 66)
        assert service.ask("GET", "/api/v1/nodes").status == 200
        assert {_status(connection) for connection in begun} == {503}
        assert "does not answer" in service.ask("GET", path).error["message"]
        for number in range(60):
            service.client.put_node(f"m{number}", agent.address)
        asked = time.monotonic()
        service.server.stop()
    assert time.monotonic() - asked < 20, "sixty notices were told one after the other before the end"


def test_an_answer_that_is_nested_too_deep_is_one_sentence(lite: Served, stack: ExitStack) -> None:
    nested = b"[" * 100_000
    agent = Trickler(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(nested), nested), b"", 20)
    stack.callback(agent.close)
    lite.client.put_node("n1", agent.address)
    lite.client.put_slot("n1", "cpu", True)
    answer = lite.ask("GET", "/api/v1/nodes/n1/slots/cpu/log")
    assert (answer.status, answer.error["code"]) == (503, "not_ready")


@pytest.mark.parametrize("token", ["", "short", "fifteen-letters"])
def test_a_token_that_is_hardly_one_is_refused_at_the_start(sqlite_url: str, token: str) -> None:
    with pytest.raises(InvalidInput, match="at least 16"):
        Server(Settings(database=sqlite_url, token=token), "127.0.0.1", 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.com"])
def test_a_service_that_others_reach_cannot_be_open_to_read(sqlite_url: str, host: str) -> None:
    with pytest.raises(InvalidInput, match="reading cannot be open"):
        Server(Settings(database=sqlite_url, token=ADMIN), host, 0)


def test_readiness_costs_one_commit_a_second_however_many_ask(lite: Served) -> None:
    writer = components_of(lite.server.app).writer
    before, begun = writer.commits, time.monotonic()
    assert {lite.ask("GET", "/readyz").status for _ in range(30)} == {200}
    assert writer.commits - before <= 3 + time.monotonic() - begun


def test_a_name_has_values_of_so_many_nodes_and_no_more(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url, max_nodes_per_name=2) as service:
        service.client.put_producer(Producer("rack", "", 1, Kind.PROGRAM))
        for name in ("a", "b", "a"):
            service.client.put_value("rack", name, 1)
        with pytest.raises(Conflict, match="values of 2 nodes already"):
            service.client.put_value("rack", "c", 1)
        service.client.delete_value("rack", "a")
        service.client.put_value("rack", "c", 1)


def test_nobody_writes_over_what_a_slot_says(lite: Served) -> None:
    lite.client.put_slot("n1", "cpu", True)
    lite.client.report("n1", Report("b", 1, "", (Run("cpu", Outcome.QUARANTINED, 0.1, reason="bad"),)))
    with pytest.raises(Conflict, match="nodewise slot stop cpu --node n1"):
        lite.client.put_value("cpu", "n1", 1)
    assert lite.client.slots("n1").slots[0].outcome is Outcome.QUARANTINED
    lite.client.put_value("cpu", "elsewhere", 1)
    lite.client.put_slot("n1", "cpu", False)
    lite.client.put_value("cpu", "n1", 1)


def test_long_answers_are_cut_and_say_so(database: str, serve: Serving) -> None:
    with serve(database, max_body=4_000) as service:
        service.client.put_producer(Producer("text", "", 1, Kind.PROGRAM, keep=3_600))
        for number in range(9):
            service.client.put_producer(Producer(f"long_{number}", "x " * 450, 1))
            service.client.put_value("text", "n1", f"{number}{'x' * 900}")
        said = service.client.history("text", "n1", 0)
        assert [text[0] for _, text in said.points] == ["5", "6", "7", "8"]
        assert said.since == said.points[0][0]
        assert service.client.history("text", "n1", said.points[2][0]).since == said.points[2][0]
        pages, last = [], 0
        while page := service.client.audit(last):
            pages.append(len(page))
            last = page[-1].sequence
        assert (sum(pages), last) == (19, 19) and len(pages) > 2


def test_one_caller_gets_a_quarter_of_the_places_to_watch() -> None:
    broker = Broker(Clock(), 8)
    mine = [broker.watch(Filter(), who="a") for _ in range(2)]
    with pytest.raises(NotReady, match="2 times already"):
        broker.watch(Filter(), who="a")
    broker.watch(Filter(), who="b")
    mine[0].close()
    broker.watch(Filter(), who="a")


def test_watchers_are_told_apart_by_token_else_by_address(sqlite_url: str, serve: Serving, stack: ExitStack) -> None:
    with serve(sqlite_url, watchers=4) as service:
        _, token = service.client.create_token("dashboard", Role.READER)
        head = "GET /api/v1/events HTTP/1.1\nHost: localhost\n"
        [anonymous] = _begin(service, stack, f"{head}\n", 1)
        assert _status(anonymous) == 200
        assert service.ask("GET", "/api/v1/events", token=None).status == 503
        [known] = _begin(service, stack, f"{head}Authorization: Bearer {token}\n\n", 1)
        assert _status(known) == 200


def test_the_log_says_how_each_change_was_answered(lite: Served) -> None:
    lite.client.put_node("n1", "127.0.0.1:10")
    lite.client.put_producer(Producer("long", "x" * 4_090, 1, help="y" * 100))
    token, _ = lite.client.create_token("a", Role.READER)
    lite.client.revoke_token(token.token_id)
    entries = lite.client.audit(2)
    assert [(entry.call.split()[0], entry.status) for entry in entries] == [
        ("PUT", 200), ("PUT", 201), ("POST", 201), ("DELETE", 204)
    ]  # fmt: skip
    assert len(entries[1].detail) == audit.LONGEST and entries[1].detail.endswith("x\N{HORIZONTAL ELLIPSIS}")
    assert json.loads(entries[0].detail) == {"address": "127.0.0.1:10", "agent_version": ""}


def test_changes_that_contradict_what_is_stored_leave_a_line(lite: Served, eventually: Eventually) -> None:
    lite.client.put_producer(Producer("speed", "", 1, Kind.PROGRAM))
    asked = [
        ("PUT", "/api/v1/nodes/n1/slots/speed", {}, {}),
        ("DELETE", "/api/v1/producers/cpu", None, {"If-Match": "7"}),
        ("PUT", "/api/v1/producers/cpu", {"cmd": "x", "time_max": -1}, {}),
    ]
    assert [lite.ask(*call[:3], headers=call[3]).status for call in asked] == [409, 412, 422]
    lite.ask("POST", "/api/v1/nodes/n1/report", {"boot": 3})
    eventually(lambda: len(lite.client.audit(3)) >= 3)
    refused = lite.client.audit(3)
    assert [(entry.call, entry.status) for entry in refused] == [
        (f"{method} {path}", status) for (method, path, *_), status in zip(asked, (409, 412, 422), strict=True)
    ]
    assert {entry.who for entry in refused} == {"first admin"} and "time_max" in refused[2].detail


def test_a_change_of_whatever_is_registered_needs_something_registered(lite: Served) -> None:
    any_version, body = {"If-Match": "*"}, {"cmd": "x", "time_max": 3}
    assert lite.ask("PUT", "/api/v1/producers/new", body, headers=any_version).status == 412
    assert lite.ask("PUT", "/api/v1/producers/cpu", body, headers=any_version).status == 200
    assert lite.ask("DELETE", "/api/v1/producers/cpu", headers=any_version).status == 204
