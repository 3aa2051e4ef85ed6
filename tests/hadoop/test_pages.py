"""Reading a page of a daemon that is silent, hangs up, sends too much, or stands behind a redirect or TLS."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hadoop.errors import HadoopError
from hadoop.rest import container_logs
from hadoop.rest.container_logs import Piece, read_since
from hadoop.rest.pages import Limits, NoAnswer, NotKnown, Pages, TooLarge
from hadoop.rest.resourcemanager import ResourceManager
from tests.hadoop.hadoop_pages import Daemon, Said

FRAMED = b"LogType:stdout\nLogLength:6\nLogContents:\nhello\n\nEnd of LogType:stdout\n"


@contextmanager
def _answering(answer: bytes | None) -> Iterator[str]:
    """The address of a server that gives this answer once; None: it never answers at all."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer or b"")

        thread = Thread(target=serve)
        if answer is not None:
            thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        if answer is not None:
            thread.join()


def _log(address: str) -> Piece | None:
    return read_since("container_1_1", f"http://{address}", "stdout", "me", 0)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "timed out"),
        (b"", "Remote end closed connection without response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut", "IncompleteRead"),
    ],
)
def test_a_nodemanager_that_does_not_answer_is_one_sentence(
    answer: bytes | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_logs, "LIMITS", Limits(silence=0.2 if answer is None else 30.0))
    with _answering(answer) as address, pytest.raises(HadoopError, match=rf"does not answer \(.*{reason}.*\): `"):
        _log(address)


def test_a_proxy_in_the_environment_is_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with _answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(FRAMED), FRAMED)) as address:
        assert _log(address) == Piece(0, b"hello\n")


def test_a_log_that_is_refused_is_none() -> None:
    with _answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") as address:
        assert _log(address) is None


def test_an_application_that_is_not_known_is_told_from_a_daemon_that_cannot_answer() -> None:
    for status, kind, words in ((404, NotKnown, "application_1_1 is not known at"), (503, HadoopError, "503")):
        answer = b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status
        with _answering(answer) as address, pytest.raises(HadoopError, match=words) as refused:
            ResourceManager(f"http://{address}").is_running("application_1_1")
        assert type(refused.value) is kind


def _ok(content: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)


def test_a_page_that_is_too_large_is_not_read() -> None:
    with _answering(_ok(b"x" * 11)) as address, pytest.raises(TooLarge, match=r"/page is more than 0 MB"):
        Pages("NameNode", f"http://{address}", Limits(size_bytes=10)).ask("/page")
    with _answering(_ok(b"x" * 10)) as address:
        assert len(Pages("NameNode", f"http://{address}", Limits(size_bytes=10)).ask("/page").content) == 10


def test_a_page_that_comes_byte_by_byte_is_given_up_when_its_time_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for _ in range(2000):
                    connection.sendall(b"x")
                    time.sleep(0.05)

        thread = Thread(target=drip)
        thread.start()
        begun = time.monotonic()
        pages = Pages("NameNode", f"http://127.0.0.1:{server.getsockname()[1]}", Limits(seconds=0.5))
        with pytest.raises(NoAnswer, match=r"the NameNode at .* does not answer \(timed out"):
            pages.ask("/")
        assert 0.4 < time.monotonic() - begun < 60  # all of it would take 100 s
        thread.join()


@pytest.mark.parametrize(
    ("status", "said"), [(401, b""), (403, b""), (500, b"User [svc] is not authorized to view the logs")]
)
def test_a_page_that_is_denied_is_not_called_unknown(status: int, said: bytes) -> None:
    answer = b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n%b" % (status, len(said), said)
    with (
        _answering(answer) as address,
        pytest.raises(HadoopError, match="does not show application application_1 to this user") as refused,
    ):
        ResourceManager(f"http://{address}").is_running("application_1")
    assert not isinstance(refused.value, NotKnown)


def test_a_redirect_is_followed_to_another_daemon() -> None:
    with _answering(_ok(b"block")) as datanode:
        where = b"HTTP/1.1 307 There\r\nLocation: http://%b/b?x=1\r\nContent-Length: 0\r\n\r\n" % datanode.encode()
        with _answering(where) as namenode:
            assert Pages("NameNode", f"http://{namenode}").ask("/a").content == b"block"


class Keeping:
    """A server that keeps connections open, as a daemon of Hadoop does, and counts them."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        keeping = self
        self.connections = 0

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                keeping.connections += 1
                super().setup()

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(self.path)))
                self.end_headers()
                self.wfile.write(self.path.encode())
                self.close_connection = self.path == "/last"

            def log_message(self, format: str, *args: object) -> None:
                """Tests need no log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
        self.port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def test_connections_are_kept_and_a_closed_one_is_opened_again() -> None:
    server = Keeping()
    pages = Pages("NameNode", f"http://127.0.0.1:{server.port}", kept=1)
    assert [pages.ask(path).content for path in ("/a", "/b")] == [b"/a", b"/b"]
    assert server.connections == 1
    pages.ask("/last")
    assert pages.ask("/c").content == b"/c"
    assert server.connections == 2
    del pages
    server.close()


def test_without_keeping_each_page_has_a_connection_of_its_own() -> None:
    server = Keeping()
    pages = Pages("NameNode", f"http://127.0.0.1:{server.port}")
    for path in ("/a", "/b"):
        pages.ask(path)
    assert server.connections == 2
    server.close()


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A key and the certificate of 127.0.0.1, signed by itself."""
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-days", "2", "-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1"]
    argv += ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run(argv, check=True, capture_output=True)
    return tmp_path


def test_https_is_spoken_to_a_daemon_whose_certificate_is_trusted_and_to_no_other(
    authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
    server = Keeping(context)
    address = f"https://127.0.0.1:{server.port}"
    try:
        with pytest.raises(NoAnswer, match="certificate verify failed"):
            Pages("ResourceManager", address).ask("/a")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority / "cert.pem"))
        pages = Pages("ResourceManager", address, kept=1)
        assert [pages.ask(path).content for path in ("/a", "/b")] == [b"/a", b"/b"]
        del pages
    finally:
        server.close()


def test_what_takes_long_to_be_sent_is_answered_nevertheless() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a"
        time.sleep(0.4)
        yield b"b"

    daemon = Daemon(lambda asked: Said(200, asked.body))
    try:
        pages = Pages("DataNode", daemon.address, Limits(seconds=0.2))
        assert pages.send("PUT", "/file", pieces()).content == b"ab"
    finally:
        daemon.close()
