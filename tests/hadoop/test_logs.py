"""Asking a NodeManager for a log when it is silent, hangs up, or a proxy stands in the environment."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from hadoop.errors import HadoopError
from hadoop.rest import logs
from hadoop.rest.live_logs import Piece, read_on

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
    return read_on("container_1_1", address, "stdout", "me", 0)


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
    monkeypatch.setattr(logs, "_TIMEOUT_SECONDS", 0.2)
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
    for status, kind, words in ((404, logs.NotKnown, "application_1_1 is not known at"), (503, HadoopError, "503")):
        answer = b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status
        with _answering(answer) as address, pytest.raises(HadoopError, match=words) as refused:
            logs.running(f"http://{address}", "application_1_1")
        assert type(refused.value) is kind


def test_every_attempt_that_has_a_container_is_found_in_order() -> None:
    second = {"id": 2, "containerId": "container_e01_1_0001_02_000001", "nodeHttpAddress": "127.0.9.12:8042"}
    first = {"id": 1, "containerId": "container_1_0001_01_000001", "nodeHttpAddress": "127.0.9.11:8042"}
    waiting = {"id": 3, "containerId": None, "nodeHttpAddress": None}
    assert logs.parse_attempts({"appAttempts": {"appAttempt": [second, waiting, first]}}) == [
        ("container_1_0001_01_000001", "127.0.9.11:8042"),
        ("container_e01_1_0001_02_000001", "127.0.9.12:8042"),
    ]
    assert logs.parse_attempts({"appAttempts": None}) == []
