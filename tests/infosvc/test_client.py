"""What the client says of addresses, tokens and answers that are none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from infosvc.client import InfoClient
from infosvc.errors import NotReady, Unauthorized, Unreachable


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
    yield InfoClient(f"http://127.0.0.1:{server.server_port}")
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
    with pytest.raises(NotReady, match="answered, but is no information service"):
        call(other)


@pytest.mark.parametrize("other", [(200, b"<html>")], indirect=True)
def test_a_write_that_no_information_service_took_is_an_error(other: InfoClient) -> None:
    with pytest.raises(NotReady, match="answered, but is no information service"):
        other.put_value("cpu", "n1", 1)
