"""What the client says of addresses, tokens and answers that are none, and how it bears with a service."""

from __future__ import annotations

import datetime
import gc
import ipaddress
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from infosvc.wire.client import InfoClient
from infosvc.wire.connection import Call, Connections
from infosvc.wire.errors import InvalidInput, NotFound, NotReady, Revoked, TooManyRequests, Unauthorized, Unreachable
from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

Step = tuple[int, dict[str, str], Any] | None

DROP: Step = None  # in place of an answer: the connection is closed without one
NODES: Step = (200, {}, {"nodes": []})
AWAY: Step = (503, {}, {"error": {"code": "not_ready", "message": "later", "field": None}})


@pytest.mark.parametrize(
    "url", ["", "ftp://h", "http://", "http://h:84000", "http://h:84x", "http://[::1", "http://a..b:1"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Unreachable, match="use http://HOST:PORT"):
        InfoClient(url)


@pytest.mark.parametrize("token", ["two words", "two\nlines", "schl\u00fcssel"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(Unauthorized, match="one word"):
        InfoClient(token=token)


def test_a_token_file_may_be_missing_but_must_be_readable(tmp_path: Path) -> None:
    InfoClient.from_token_file("http://h:1", tmp_path / "missing")
    with pytest.raises(Unauthorized, match="cannot be read"):
        InfoClient.from_token_file("http://h:1", tmp_path)


@pytest.fixture
def other(request: pytest.FixtureRequest) -> Iterator[InfoClient]:
    """A client of something that gives one status and one body to every call."""
    status, body = request.param

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_said: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield InfoClient(f"http://127.0.0.1:{server.server_port}", retries=0)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "other", [(200, b"<html>"), (200, b"[]"), (200, b"{}"), (200, b""), (200, b"\xff"), (302, b"{}")], indirect=True
)
@pytest.mark.parametrize(
    "call",
    [InfoClient.producers, lambda c: c.producer("a"), InfoClient.nodes, lambda c: c.slots("n"), lambda c: c.data("a")],
)
def test_what_is_no_information_service_is_told_apart(other: InfoClient, call: Callable[[InfoClient], object]) -> None:
    with pytest.raises(NotReady, match="answered, but is not an information service"):
        call(other)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.producer("a/b"),
        lambda c: c.delete_node("n1/slots/cpu"),
        lambda c: c.put_slot("n1/slots", "cpu", True),
        lambda c: c.data("cpu/n1"),
        lambda c: c.delete_value("cpu", ".."),
        lambda c: c.revoke_token(""),
    ],
)
def test_a_name_that_would_lead_to_another_address_is_never_sent(
    script: Script, call: Callable[[InfoClient], object]
) -> None:
    with InfoClient(script.url, retries=0) as client, pytest.raises(InvalidInput, match="cannot be a name"):
        call(client)
    assert script.seen == []


def test_whatever_else_a_name_holds_arrives_as_it_is(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("rack:a.b-c", "", 60, kind=Kind.PROGRAM))
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_value("rack:a.b-c", "n1", "r7")
        assert [datum.data_value for datum in service.client.data("rack:a.b-c")] == ["r7"]
        with pytest.raises(NotFound, match=r"'a%2Fb\?c'"):
            service.client.producer("a%2Fb?c")


@pytest.mark.parametrize("other", [(200, b"<html>")], indirect=True)
def test_a_write_that_no_information_service_took_is_an_error(other: InfoClient) -> None:
    with pytest.raises(NotReady, match="answered, but is not an information service"):
        other.put_value("cpu", "n1", 1)


@dataclass
class Script:
    """A server that answers as it is told; `seen` is what it got: the number of the connection, and the method."""

    url: str = ""
    steps: list[Step] = field(default_factory=list)
    seen: list[tuple[int, str]] = field(default_factory=list)
    connections: int = 0


@pytest.fixture
def script() -> Iterator[Script]:
    """One such server."""
    play = Script()

    class Actor(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            play.connections += 1
            self.number = play.connections

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            play.seen.append((self.number, self.command))
            step = play.steps.pop(0)
            if step is None:
                self.close_connection = True
                return
            status, headers, said = step
            body = json.dumps(said).encode()
            self.send_response(status)
            for name, text in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *_said: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Actor)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    play.url = f"http://127.0.0.1:{server.server_port}"
    yield play
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_connection_is_kept_for_the_next_call(script: Script) -> None:
    script.steps = [NODES] * 3
    with InfoClient(script.url) as client:
        for _ in range(3):
            client.nodes()
    assert script.seen == [(1, "GET")] * 3


def test_threads_share_a_client_and_never_a_connection_at_once(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as served:
        for number in range(8):
            served.client.put_producer(Producer(f"p{number}", "x", 1.0))
        wrong: list[str] = []

        def read(name: str) -> None:
            wrong.extend(found for _ in range(30) if (found := served.reader.producer(name).data_name) != name)

        threads = [threading.Thread(target=read, args=(f"p{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_kept_connection_that_was_dropped_is_replaced_at_once(script: Script) -> None:
    script.steps = [NODES, DROP, NODES]
    client = InfoClient(script.url, retries=0)
    client.nodes()
    assert client.nodes() == []
    assert script.seen == [(1, "GET"), (1, "GET"), (2, "GET")]


def test_a_new_connection_that_drops_is_a_failure(script: Script) -> None:
    script.steps = [DROP]
    with pytest.raises(Unreachable, match="nodewise serve"):
        InfoClient(script.url, retries=0).nodes()


def test_a_service_that_is_away_for_a_moment_is_asked_again(script: Script) -> None:
    script.steps = [DROP, AWAY, NODES]
    assert InfoClient(script.url).nodes() == []
    assert len(script.seen) == 3


def test_a_service_that_stays_away_is_an_error_after_the_retries(script: Script) -> None:
    script.steps = [AWAY] * 9
    with pytest.raises(NotReady, match="later"):
        InfoClient(script.url, retries=3).nodes()
    assert len(script.seen) == 4


def test_retry_after_is_honoured_and_not_beyond_the_timeout(script: Script) -> None:
    slow = (429, {"Retry-After": "1"}, {"error": {"code": "too_many_requests", "message": "slow down", "field": None}})
    script.steps = [slow, NODES]
    began = time.monotonic()
    assert InfoClient(script.url).nodes() == []
    assert time.monotonic() - began >= 1
    script.steps = [(429, {"Retry-After": "60"}, slow[2])]
    with pytest.raises(TooManyRequests, match="slow down"):
        InfoClient(script.url).nodes()
    assert len(script.seen) == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.report("n1", Report("b", 1)),
        lambda client: client.create_token("a", Role.READER),
        lambda client: client.put_producer(Producer("a", "x", 1.0), if_match=1),
        lambda client: client.put_producer(Producer("a", "x", 1.0), new=True),
        lambda client: client.delete_producer("a", if_match=1),
        lambda client: client.put_slot("n1", "a", True, lift=True),
    ],
)
def test_what_must_not_happen_twice_is_sent_once(script: Script, call: Callable[[InfoClient], object]) -> None:
    script.steps = [AWAY] * 3
    with pytest.raises(NotReady, match="later"):
        call(InfoClient(script.url))
    assert len(script.seen) == 1


def test_a_repeated_delete_that_finds_nothing_has_done_its_work(script: Script) -> None:
    gone: Step = (404, {}, {"error": {"code": "not_found", "message": "no such node", "field": None}})
    script.steps = [DROP, gone, gone]
    client = InfoClient(script.url)
    client.delete_node("n1")
    with pytest.raises(NotFound):
        client.delete_node("n1")


def test_a_revoked_token_is_told_from_an_unknown_one(script: Script) -> None:
    script.steps = [(401, {}, {"error": {"code": code, "message": "no", "field": None}}) for code in ("revoked", "x")]
    with pytest.raises(Revoked):
        InfoClient(script.url).nodes()
    with pytest.raises(Unauthorized) as caught:
        InfoClient(script.url).nodes()
    assert not isinstance(caught.value, Revoked)


def test_a_client_that_is_forgotten_closes_its_connections(script: Script) -> None:
    script.steps = [NODES, NODES]
    client = InfoClient(script.url)
    client.nodes()
    idle = client._connections._idle[0]
    del client
    gc.collect()
    assert idle.sock is None


def test_a_forked_process_uses_no_connection_of_its_parent(script: Script) -> None:
    script.steps = [NODES, NODES]
    connections = Connections(script.url, 10.0)
    connections.ask(Call("GET", "/"), 0)
    connections._process = os.getpid() - 1  # as it looks after a fork
    connections.ask(Call("GET", "/"), 0)
    assert script.seen == [(1, "GET"), (2, "GET")]


def test_an_answer_that_has_not_changed_is_not_sent_again(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as served:
        served.client.put_producer(Producer("rack", "", 3600.0, kind=Kind.PROGRAM))
        served.client.put_value("rack", "n1", "r7")
        statuses = _statuses(served)
        first = served.reader.data("rack")
        second = served.reader.data("rack")
        assert statuses == [200, 304]
        assert [datum.data_value for datum in second] == ["r7"]
        assert first[0].age is not None and second[0].age is not None and second[0].age > first[0].age
        served.client.put_value("rack", "n1", "r8")
        assert [datum.data_value for datum in served.reader.data("rack")] == ["r8"]
        assert statuses[-1] == 200


def _statuses(served: Served) -> list[int]:
    """The statuses that the service's reader gets from now on."""
    found: list[int] = []
    connections, plain = served.reader._connections, served.reader._connections.ask

    def ask(call: Call, retries: int) -> Any:
        answer = plain(call, retries)
        found.append(answer.status)
        return answer

    connections.ask = ask  # type: ignore[method-assign]
    return found


def test_several_names_are_read_in_few_calls(sqlite_url: str, serve: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infosvc.wire.client.NAMES_PER_CALL", 2)
    with serve(sqlite_url) as served:
        names = [f"name_{number}" for number in range(3)]
        for name in names:
            served.client.put_producer(Producer(name, "x", 60.0))
        served.client.put_node("n1", "127.0.0.1:9")
        served.client.report("n1", Report("b", 1, "", tuple(Run(name, Outcome.OK, 0.1, name) for name in names)))
        statuses = _statuses(served)
        found = served.reader.data_many(names)
        assert len(statuses) == 2
        assert {name: rows[0].data_value for name, rows in found.items()} == dict(zip(names, names, strict=True))
        assert served.reader.data_many(names[:2], node="n2") == {"name_0": [], "name_1": []}
        with pytest.raises(NotFound):
            served.reader.data_many(["name_0", "nothing"])


@dataclass
class Authority:
    """A certificate authority of its own; `file` is its certificate."""

    folder: Path
    file: Path = field(init=False)

    def __post_init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.folder.name)])
        self.file = self._write("ca.pem", self._certificate(self._name, self._key, True))

    def issue(self) -> tuple[str, str]:
        """The files of a certificate for 127.0.0.1 and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "service")])
        plain = serialization.NoEncryption()
        text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        return str(self._write("cert.pem", self._certificate(name, key, False))), str(self._write("key.pem", text))

    def _certificate(self, name: x509.Name, key: ec.EllipticCurvePrivateKey, is_ca: bool) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(is_ca, None), True).add_extension(address, False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _write(self, name: str, text: bytes) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        path.touch(0o600)
        path.write_bytes(text)
        return path


def test_https_trusts_the_authority_that_was_named_and_no_other(
    tmp_path: Path, sqlite_url: str, serve: Serving
) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    certificate, key = ours.issue()
    with serve(sqlite_url, tls_cert=certificate, tls_key=key) as served:
        with InfoClient(served.url, ca_file=ours.file) as client:
            assert client.nodes() == []
            assert [client.nodes() for _ in range(2)] == [[], []]
            client.events().close()
        for ca_file in (other.file, None):
            with pytest.raises(Unreachable, match=r"is not trusted .*--ca-file"):
                InfoClient(served.url, ca_file=ca_file).nodes()
        with pytest.raises(Unreachable, match=r"is not trusted .*--ca-file"):
            InfoClient(served.url.replace("127.0.0.1", "localhost"), ca_file=ours.file).nodes()


def test_https_to_a_plain_service_is_told_in_a_sentence(script: Script, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with pytest.raises(Unreachable, match="does not speak https"):
        InfoClient(script.url.replace("http://", "https://"), ca_file=authority.file, retries=0).nodes()


def test_a_server_that_greets_like_a_database_is_told_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        greeter = threading.Thread(target=_greet, args=(listener,))
        greeter.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"^what answers at {url} is no information service: name the address"):
            InfoClient(url, retries=0).nodes()
        greeter.join()


def _greet(listener: socket.socket) -> None:
    with listener.accept()[0] as caller:
        caller.recv(65536)
        caller.sendall(b"J\0\0\0\x0a5.5.5-10.11.19-MariaDB\0")


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_ca_file_that_is_none_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput, match="certificates in PEM form"):
        InfoClient("https://127.0.0.1:1", ca_file=path)
