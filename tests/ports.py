"""Ports for what tests start."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

# Below those that the kernel gives to connections, so that none of these takes a port before it is listened on.
RANGE = range(20_000, 32_000)


def free_port(host: str = "127.0.0.1") -> int:
    """A port of this address that nobody listens on now."""
    for port in random.sample(RANGE, 100):
        with suppress(OSError), socket.create_server((host, port)):
            return port
    raise AssertionError(f"none of a hundred ports of {host} between {RANGE.start} and {RANGE.stop} is free")
