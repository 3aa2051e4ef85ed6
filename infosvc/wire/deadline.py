"""Reads from a connection until a deadline, however slowly the bytes come.

A timeout of a socket starts anew with every byte, so that alone never ends a caller who sends one now and then.
"""

from __future__ import annotations

import io
import socket
import time
from typing import Any, Protocol

_CHUNK_BYTES = 64 * 1024


class DeadlineReader(io.RawIOBase):
    """Reads from a connection; `deadline` (monotonic seconds) may be moved. TimeoutError once it has passed."""

    def __init__(self, connection: socket.socket, deadline: float = 0.0) -> None:
        self._connection = connection
        self.deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What http.client.HTTPResponse asks of a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("its answer comes too slowly")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Answer(Protocol):
    def read1(self, size: int = -1, /) -> bytes: ...


def read_all(answer: _Answer, most_bytes: int, seconds: float) -> bytes:
    """Read an open answer to its end; TimeoutError beyond `seconds`, ValueError beyond `most_bytes`.

    The moment is looked at between two pieces, so one silence may last as long as the timeout of the answer's socket.
    """
    content, deadline = bytearray(), time.monotonic() + seconds
    while piece := answer.read1(_CHUNK_BYTES):
        content += piece
        if len(content) > most_bytes:
            raise ValueError(f"the answer is longer than {most_bytes} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError("its answer comes too slowly")
    return bytes(content)
