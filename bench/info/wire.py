"""HTTP as cheap as Python can send it, so that the measuring takes little from what is measured."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench.info.errors import BenchError

PATIENCE_SECONDS = 30.0
_FIRST_BUFFER = 1 << 14
_LAST_CHUNK = b"0\r\n\r\n"

Address = tuple[str, int]


def request(method: str, path: str, token: str = "", body: bytes = b"") -> bytes:
    """One whole request for a line that stays open."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode() + body


class Line:
    """One kept-open connection, one request at a time; `sent` is the monotonic second of the last one.

    Whatever goes wrong on it is a BenchError.
    """

    def __init__(self, address: Address) -> None:
        try:
            self._socket = socket.create_connection(address, timeout=PATIENCE_SECONDS)
        except OSError as error:
            raise BenchError(f"nothing listens at {address[0]}:{address[1]}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(_FIRST_BUFFER)
        self._filled = 0
        self._head = 0
        self._length: int | None = None
        self._request = b""
        self.sent = 0.0

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    def close(self) -> None:
        """Give the connection up."""
        self._socket.close()

    def send(self, message: bytes) -> None:
        """Ask; the answer is then read with `receive`."""
        self._filled = self._head = 0
        self._length = None
        self._request = message
        self.sent = time.monotonic()
        try:
            self._socket.sendall(message)
        except OSError as error:
            raise BenchError(f"{self._request_line()} could not be sent: {error}") from error

    def receive(self) -> bool:
        """Read what has come; True when the answer is whole."""
        if self._filled == len(self._buffer):
            self._buffer.extend(bytes(len(self._buffer)))
        self._filled += self._receive_some()
        if not self._head:
            self._read_head()
        if self._head and self._length is None:
            return self._buffer[self._filled - len(_LAST_CHUNK) : self._filled] == _LAST_CHUNK
        return bool(self._head) and self._filled == self._head + (self._length or 0)

    def check(self) -> None:
        """BenchError unless the answer says that all went well."""
        if self._buffer[9:10] != b"2":
            raise BenchError(f"{self._request_line()} was answered {bytes(self._buffer[: self._filled][:600])!r}")

    def body(self) -> bytes:
        """The body of the answer."""
        content = bytes(self._buffer[self._head : self._filled])
        return content if self._length is not None else _join_chunks(content)

    def ask(self, message: bytes) -> bytes:
        """Send and wait; the body of the answer. BenchError unless all went well."""
        self.send(message)
        while not self.receive():
            pass
        self.check()
        return self.body()

    def _receive_some(self) -> int:
        try:
            with memoryview(self._buffer) as view:
                got = self._socket.recv_into(view[self._filled :])
        except OSError as error:
            raise BenchError(f"{self._request_line()} got no answer: {error}") from error
        if got == 0:
            raise BenchError(f"the connection was closed on {self._request_line()}")
        return got

    def _read_head(self) -> None:
        end = self._buffer.find(b"\r\n\r\n", 0, self._filled)
        if end < 0:
            return
        self._head = end + 4
        for header in bytes(self._buffer[:end]).lower().split(b"\r\n")[1:]:
            name, _, value = header.partition(b":")
            if name == b"content-length":
                self._length = int(value)

    def _request_line(self) -> str:
        return self._request.split(b" HTTP", 1)[0].decode()


def _join_chunks(content: bytes) -> bytes:
    """The body that came in chunks."""
    pieces: list[bytes] = []
    while True:
        size, _, content = content.partition(b"\r\n")
        if int(size, 16) == 0:
            return b"".join(pieces)
        pieces.append(content[: int(size, 16)])
        content = content[int(size, 16) + 2 :]


def ask_json(address: Address, message: bytes) -> Any:
    """The decoded answer of `ask_once`."""
    return json.loads(ask_once(address, message))


def ask_once(address: Address, message: bytes) -> bytes:
    """One request on a connection of its own; the body of the answer. BenchError unless all went well."""
    line = Line(address)
    try:
        return line.ask(message)
    finally:
        line.close()


def drive(
    lines: Sequence[Line],
    turn: Callable[[Line], bytes | None],
    done: Callable[[Line, float], None] = lambda _line, _seconds: None,
) -> None:
    """Keep one request open on every line until `turn` has no more for it.

    `done(line, seconds)` is told how long each took, from before its first byte went to after its last came.
    """
    with selectors.DefaultSelector() as selector:
        for line in lines:
            if (message := turn(line)) is not None:
                line.send(message)
                selector.register(line, selectors.EVENT_READ, line)
        while selector.get_map():
            for line in readable(selector):
                if not line.receive():
                    continue
                done(line, time.monotonic() - line.sent)
                line.check()
                if (message := turn(line)) is None:
                    selector.unregister(line)
                else:
                    line.send(message)


def readable(selector: selectors.BaseSelector) -> Iterable[Line]:
    """The lines on which something has come; BenchError when nothing does for too long."""
    ready = selector.select(PATIENCE_SECONDS)
    if not ready:
        raise BenchError(f"no answer came within {PATIENCE_SECONDS:g} s")
    return [key.data for key, _ in ready]
