"""Answers over HTTP that are bounded in time and in bytes, whoever sends them. Standard library only.

connection = new_connection("node7", 8410, 5.0)
connection.request("GET", "/healthz")
text = read_whole(answer_by(connection, time.monotonic() + 5.0), 4096)
"""

from __future__ import annotations

import math
import ssl
import time
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from socket import socket
from urllib.parse import urlsplit

from infosvc.wire.deadline import DeadlineReader

CHUNK_BYTES = 1 << 20


class AnswerTooLarge(HTTPException):
    """More came than the reader allows."""


def new_connection(
    host: str, port: int | None, connect_seconds: float, tls: ssl.SSLContext | None = None
) -> HTTPConnection:
    """A connection that is opened by its first call, within so many seconds; over https with a context."""
    if tls is None:
        return HTTPConnection(host, port, timeout=connect_seconds)
    return HTTPSConnection(host, port, timeout=connect_seconds, context=tls)


def answer_by(connection: HTTPConnection, deadline: float, silence: float = math.inf) -> HTTPResponse:
    """The answer to what was just asked on a connection, to be read until a deadline in monotonic seconds.

    TimeoutError, also when its body is read, once that has passed or no byte came for `silence` seconds.
    """

    def respond(sock: socket, method: str | None) -> HTTPResponse:
        return HTTPResponse(DeadlineReader(sock, deadline, silence), method=method)  # type: ignore[arg-type]

    connection.response_class = respond  # type: ignore[assignment]
    return connection.getresponse()


def read_whole(answer: HTTPResponse, most_bytes: int) -> bytes:
    """The body of an answer; AnswerTooLarge beyond so many bytes, IncompleteRead when it breaks off."""
    content = bytearray()
    while chunk := answer.read(min(CHUNK_BYTES, most_bytes + 1)):
        content += chunk
        if len(content) > most_bytes:
            raise AnswerTooLarge(f"its answer has more than {most_bytes} bytes")
    if answer.length:
        raise IncompleteRead(bytes(content), answer.length)
    return bytes(content)


def read_page(url: str, seconds: float, most_bytes: int) -> bytes:
    """The page at a web address, asked for without a proxy; OSError or HTTPException when it does not come so soon."""
    parts, deadline = urlsplit(url), time.monotonic() + seconds
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    with closing(new_connection(str(parts.hostname), parts.port, seconds, tls)) as connection:
        connection.request("GET", f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}")
        answer = answer_by(connection, deadline)
        if answer.status != HTTPStatus.OK:
            raise HTTPException(f"it answered {answer.status}")
        return read_whole(answer, most_bytes)
