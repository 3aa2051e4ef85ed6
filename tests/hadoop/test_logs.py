"""Asking a NodeManager for a log when it is silent, hangs up, or a proxy stands in the environment."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from hadoop import logs
from hadoop.errors import HadoopError

FRAMED = b"LogType:stdout\nLogContents:\nhello\n\nEnd of LogType:stdout\n"


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


def _log(address: str) -> str:
    return logs.container_log("container_1_1", address, "stdout", "me")


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
    with _answering(answer) as address, pytest.raises(HadoopError, match=rf"cannot be asked for at .*\({reason}.*\): "):
        _log(address)


def test_a_proxy_in_the_environment_is_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with _answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(FRAMED), FRAMED)) as address:
        assert _log(address) == "hello\n"


def test_a_status_of_refusal_names_what_is_not_known() -> None:
    refused = pytest.raises(HadoopError, match=r"the log of container_1_1 is not known there \(status 404\)")
    with _answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") as address, refused:
        _log(address)
