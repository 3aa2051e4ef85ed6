"""Reads from a connection until a deadline, however slowly the bytes come.

A timeout of a socket starts anew with every byte, so that alone never ends a caller who sends one now and then.
"""

from __future__ import annotations

import io
import math
import socket
import time
from typing import Any


class DeadlineReader(io.RawIOBase):
    """Reads from a connection: TimeoutError after `silence` seconds without a byte, and once `deadline` has passed.

    The deadline is in monotonic seconds, and may be moved.
    """

    def __init__(self, connection: socket.socket, deadline: float = 0.0, silence: float = math.inf) -> None:
        self.deadline = deadline
        self._silence = silence
        self._connection = connection
        self._raw = connection.makefile("rb", buffering=0)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Do what http.client.HTTPResponse asks of a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Tell that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Fill a buffer with what has come."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out: it comes too slowly")
        self._connection.settimeout(min(self._silence, left))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Let go of the connection, which its owner may still use."""
        self._raw.close()
        super().close()
