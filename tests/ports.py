"""Ports for what tests start."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from contextlib import suppress
from itertools import cycle, islice

# Below those that the kernel gives to connections, so that none of these takes a port before it is listened on.
RANGE = range(20_000, 32_000)
_ORDER = cycle(random.sample(RANGE, len(RANGE)))  # so that no port is told twice before somebody listens on it
# Runs of tests beside this one lock the bytes of the ports that they have told, until they end.
_TOLD = os.open(f"{tempfile.gettempdir()}/nodewise-test-ports-{os.getuid()}", os.O_RDWR | os.O_CREAT, 0o600)


def free_port(host: str = "127.0.0.1") -> int:
    """A port of this address that nobody listens on now, and that no run of tests beside this one was told."""
    for port in islice(_ORDER, 100):
        with suppress(OSError), socket.create_server((host, port)):
            fcntl.lockf(_TOLD, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            return port
    raise AssertionError(f"none of a hundred ports of {host} between {RANGE.start} and {RANGE.stop} is free")
