"""Asks the broker of boxes (boxes.broker), which an operator has put on this machine."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from boxes.box import BoxError
from boxes.broker.frames import SOCKET, read_frame

BROKER = "NODEWISE_BOXES"
"""Environment variable with the socket of another broker."""


def ask(order: Mapping[str, Any], sent: Path | None = None) -> tuple[socket.socket, Mapping[str, Any]]:
    """Send an order with an open file or folder; the connection and the broker's first report.

    BoxError when the broker refuses, OSError when it cannot do it now or there is none.
    """
    connection = socket.socket(socket.AF_UNIX)
    path = os.environ.get(BROKER, SOCKET)
    file = None if sent is None else os.open(sent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            connection.connect(path)
        except OSError as error:
            raise OSError(error.errno, "this node has no broker of boxes that answers", path) from error
        line = memoryview(json.dumps(order).encode() + b"\n")
        with suppress(BrokenPipeError):  # it has refused already, and what it says can still be read
            begun = socket.send_fds(connection, [line], [] if file is None else [file])
            if begun < len(line):
                connection.sendall(line[begun:])
        return connection, _first_report(connection)
    except BaseException:
        connection.close()
        raise
    finally:
        if file is not None:
            os.close(file)


def _first_report(connection: socket.socket) -> Mapping[str, Any]:
    frame = next_frame(connection)
    told: Mapping[str, Any] = json.loads(frame[1]) if frame else {"failed": "the broker of boxes has hung up"}
    if "refused" in told:
        raise BoxError(told["refused"], told["remedy"])
    if "failed" in told:
        raise OSError(errno.ECONNABORTED, told["failed"])
    return told


def next_frame(connection: socket.socket) -> tuple[int, bytes] | None:
    """What the broker tells next, by its kind; None when it has hung up."""
    try:
        return read_frame(connection.recv)
    except ConnectionError:
        return None
