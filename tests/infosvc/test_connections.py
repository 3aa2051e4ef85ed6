"""Many connections, slow bodies and callers that read nothing, on a service in a process of its own."""

from __future__ import annotations

import json
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count, takewhile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer, Role

ADMIN = "a-token-for-the-tests"
FILES = 13_000
SERVICE = """
import json, os, resource, signal, sys
from infosvc.access import body_limit
from infosvc.http import connections, server as http_server
from infosvc.settings import Settings
# So many callers cannot all be as quick as agents are, on a busy machine least of all.
connections.IDLE_SECONDS = connections.NEW_SECONDS = http_server.HEADER_SECONDS = 120
body_limit.LOOKS = 240
body_limit.PATIENCE_SECONDS = 60.0
files = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
server = http_server.Server(Settings(sys.argv[1], sys.argv[2], **json.loads(sys.argv[4])), "127.0.0.1", 0)
server.stop_at(signal.SIGTERM)
print(server.url, flush=True)
server.run()
os._exit(0)
"""
HEAD = "{call} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {shown}\r\nContent-Length: {length}\r\n\r\n"
Eventually = Callable[[Callable[[], bool]], None]


class Service:
    """One that runs, and connections to it that are closed with it."""

    def __init__(self, url: str, held: ExitStack) -> None:
        where = urlsplit(url)
        self.address = str(where.hostname), int(where.port or 0)
        self.client = InfoClient(url, ADMIN, timeout=120)
        self._held = held
        self._tokens = 0

    def connect(self, source: str = "127.0.0.1", buffer: int = 0) -> socket.socket:
        """A connection of its own, from one of this machine's addresses."""
        one = self._held.enter_context(socket.socket())
        one.settimeout(120)
        if buffer:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        one.bind((source, 0))
        one.connect(self.address)
        return one

    def begin(
        self, call: str, token: str = "", body: str = "{", more: int = 100, source: str = "127.0.0.1"
    ) -> socket.socket:
        """A call whose body lacks so many bytes."""
        one = self.connect(source)
        send(one, call, token, body, more)
        return one

    def token(self, role: Role = Role.ADMIN, node_name: str | None = None) -> str:
        """A new one."""
        self._tokens += 1
        return self.client.create_token(f"token-{self._tokens}", role, node_name)[1]


def send(connection: socket.socket, call: str, token: str = "", body: str = "", more: int = 0) -> None:
    """Ask on a connection, unless the service has closed it."""
    head = f"{call} HTTP/1.1\r\nHost: 127.0.0.1\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "")
    length = f"Content-Length: {len(body) + more}\r\n" if body else ""
    with suppress(ConnectionError):
        connection.sendall(f"{head}{length}\r\n{body}".encode())


def answer(connection: socket.socket) -> bytes:
    """What comes next, empty when the service has closed the connection instead; of a stream its beginning."""
    said = b""
    with suppress(ConnectionError):
        while more := connection.recv(65_536):
            said += more
            head, found, body = said.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            if found and (length is None or len(body) == int(length[1])):
                break
    return said


def status(said: bytes) -> int:
    """What an answer says."""
    return int(said.split()[1]) if said else 0


def ask_all(connections: Sequence[socket.socket], call: str, token: str = "") -> set[int]:
    """How the same call is answered on each; 0 where the connection was closed."""
    for one in connections:
        send(one, call, token)
    return {status(answer(one)) for one in connections}


def has_said(connection: socket.socket) -> bool:
    """Whether there is something to read, be it the end."""
    waiting = select.poll()  # as select knows no descriptor beyond 1,024
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(0))


@contextmanager
def running(place: Path, files: int = FILES, **settings: object) -> Iterator[Service]:
    """A service that may open so many files, until the block ends."""
    words = [f"sqlite:///{place}/infosvc.db", ADMIN, str(files), json.dumps(settings)]
    with ExitStack() as held:
        process = subprocess.Popen([sys.executable, "-c", SERVICE, *words], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield Service(process.stdout.readline().strip(), held)
        finally:
            held.close()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)
    assert process.returncode == 0


def fill(service: Service) -> None:
    """Tell it of two names and twenty nodes."""
    service.client.put_producer(Producer("cpu", "x", 1))
    service.client.put_producer(Producer("text", "", 1, Kind.PROGRAM))
    for number in range(20):
        service.client.put_node(f"n{number}", "127.0.0.1:9")


@pytest.fixture(scope="module", autouse=True)
def many_files() -> Iterator[None]:
    """The tests open many connections themselves."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all tests that need no other, whose callers must be quicker than usual."""
    place = tmp_path_factory.mktemp("service")
    with running(place, body_seconds=1.4, unread_seconds=1.0, watchers=8, open_reading=True) as found:
        fill(found)
        yield found


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Service]:
    """One that reads a body although it stands still for some seconds, as a busy machine may make it."""
    with running(tmp_path, body_seconds=10.0) as found:
        fill(found)
        yield found


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Service]:
    """One with room for 600 callers, of which 75 may be of one address, to which 100 with a token are connected."""
    with running(tmp_path, files=800, body_seconds=60.0) as found:
        yield found


@pytest.fixture
def kept_connections(small: Service) -> list[socket.socket]:
    """Connections to it whose callers showed a token."""
    found = []
    for _ in range(100):
        found.append(small.connect())
        assert ask_all(found[-1:], "GET /api/v1/nodes", ADMIN) == {200}
    return found


def test_serve_opens_as_many_files_as_it_ever_may(tmp_path: Path) -> None:
    """Systems give a process 1024 at first, and each agent keeps a connection. Granian asks for more when imported."""
    words = [sys.executable, "-m", "nodewise", "--home", str(tmp_path), "serve", "--port", "0"]
    limited = f'ulimit -Sn 256; ulimit -Hn {FILES}; exec "$@"'
    with subprocess.Popen(["sh", "-c", limited, "sh", *words], stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        first = service.stdout.readline()
        files = resource.prlimit(service.pid, resource.RLIMIT_NOFILE)
        service.terminate()
    assert (first.startswith("listening on "), files) == (True, (FILES, FILES))


@pytest.mark.parametrize(("number", "token"), [(1_500, ""), (3_000, ADMIN)], ids=["strangers", "known"])
def test_kept_connections_are_all_answered(service: Service, number: int, token: str) -> None:
    with ExitStack() as held:
        kept = []
        for _ in range(number):
            kept.append(held.enter_context(service.connect()))
            send(kept[-1], "GET /api/v1/data/cpu", token)  # at once, as agents do
        assert {status(answer(one)) for one in kept} == {200}
        assert ask_all(kept, "GET /api/v1/data/cpu", token) == {200}


def test_idle_strangers_of_one_address_make_room_the_oldest_first(
    small: Service, kept_connections: list[socket.socket], eventually: Eventually
) -> None:
    old = [small.connect("127.0.0.2") for _ in range(150)]
    eventually(lambda: sum(map(has_said, old)) == 75)
    new = [small.connect("127.0.0.2") for _ in range(75)]
    eventually(lambda: all(map(has_said, old)))
    assert not any(map(has_said, new))
    assert ask_all(kept_connections, "GET /api/v1/nodes", ADMIN) == {200}


def test_strangers_of_a_crowded_address_call_anew_each_time(
    small: Service, kept_connections: list[socket.socket], eventually: Eventually
) -> None:
    def is_sent_away() -> bool:
        assert ask_all(kept_connections, "GET /api/v1/nodes", ADMIN) == {200}  # whom a token keeps the connection
        said = answer(small.begin("GET /healthz", body=""))
        assert status(said) == 200
        return b"connection: close" in said

    eventually(is_sent_away)


def test_near_the_limit_strangers_go_before_all_others(
    small: Service, kept_connections: list[socket.socket], eventually: Eventually
) -> None:
    strangers = [small.connect(f"127.0.0.{number}") for number in range(2, 11) for _ in range(70)]
    eventually(lambda: sum(map(has_said, strangers)) >= 150)
    assert ask_all([*kept_connections, small.connect()], "GET /api/v1/nodes", ADMIN) == {200}


@pytest.mark.parametrize("call", ["POST /api/v1/nodes/n1/report", "PUT /api/v1/data/text/n1", "POST /api/v1/session"])
@pytest.mark.parametrize("is_stalled", [True, False], ids=["stalled", "trickling"])
def test_a_slow_body_is_ended_and_leaves_its_place(
    service: Service, eventually: Eventually, call: str, is_stalled: bool
) -> None:
    token = "" if "session" in call else service.token()
    source = f"127.0.2.{1 + is_stalled}"  # after which an address has fewer places for a minute
    slow = [service.begin(call, token, source=source) for _ in range(2)]

    def are_ended() -> bool:
        for one in () if is_stalled else slow:
            with suppress(ConnectionError):
                one.sendall(b" ")
        return all(map(has_said, slow))

    eventually(are_ended)
    assert {status(answer(one)) for one in slow} <= {0, 400}
    # A body that comes while the service stands still may be ended, too.
    eventually(lambda: status(answer(service.begin(call, token, "{}", 0, source))) == 422)


def test_slow_callers_hold_up_neither_the_reports_of_others_nor_log_in(patient: Service, stack: ExitStack) -> None:
    tokens = [patient.token() for _ in range(10)]
    nodes = {f"n{number}": patient.token(Role.AGENT, f"n{number}") for number in range(1, 20)}
    ended, is_cut = threading.Event(), threading.Event()

    def be_slow(call: str, token: str, source: str) -> None:
        while not ended.is_set():
            one = patient.begin(call, token, source=source)
            while not ended.is_set() and not has_said(one):
                ended.wait(0.02)
            if not ended.is_set():
                is_cut.set()
            one.close()

    slow = [("PUT /api/v1/data/text/n1", token, "127.0.0.1") for token in tokens for _ in range(5)]
    slow += [("POST /api/v1/session", "", f"127.0.1.{number}") for number in range(8) for _ in range(2)]
    threads = [threading.Thread(target=be_slow, args=one) for one in slow]
    for thread in threads:
        stack.callback(thread.join)
    stack.callback(ended.set)
    for thread in threads:
        thread.start()
    said = []
    for sequence in takewhile(lambda number: number <= 10 or not is_cut.is_set(), count(1)):
        report = json.dumps({"boot": "b", "sequence": sequence, "agent_version": "", "runs": []})
        begun = [
            patient.begin(f"POST /api/v1/nodes/{name}/report", token, report, 0, f"127.0.3.{name[1:]}")
            for name, token in nodes.items()
        ]
        said += [status(answer(one)) for one in begun]
        logged_in = patient.begin("POST /api/v1/session", "", json.dumps({"token": ADMIN}), 0, "127.0.0.9")
        said.append(status(answer(logged_in)))
    assert set(said) <= {200, 204}, said


def test_reports_of_a_hundred_agents_that_come_at_the_same_moment_are_all_taken(small: Service) -> None:
    small.client.put_node("n0", "127.0.0.1:9")
    report = json.dumps({"boot": "c", "sequence": 1, "agent_version": "", "runs": []})
    tokens = [small.token() for _ in range(100)]
    call, lacking = "POST /api/v1/nodes/n0/report", len(report) - 1
    begun = [
        small.begin(call, token, report[:1], lacking, f"127.0.4.{number}") for number, token in enumerate(tokens, 1)
    ]
    assert select.select(begun, [], [], 0.3)[0] == [], "refused while all are read"
    for one in begun:
        one.sendall(report[1:].encode())
    assert [status(answer(one)) for one in begun] == [200] * 100


def test_watchers_that_read_nothing_lose_their_places(service: Service, eventually: Eventually) -> None:
    deaf = [service.connect(buffer=4096) for _ in range(8)]
    for number, one in enumerate(deaf):
        send(one, "GET /api/v1/events", service.token(Role.READER) if number else "")
        eventually(lambda one=one: has_said(one))  # type: ignore[misc]
    watcher = service.token(Role.READER)
    assert status(answer(service.begin("GET /api/v1/events", watcher, body=""))) == 503

    def has_place() -> bool:
        for number in range(20):
            service.client.put_value("text", f"n{number}", "x" * 60_000)
        return status(answer(service.begin("GET /api/v1/events", watcher, body=""))) == 200

    eventually(has_place)
