"""Whether somebody serves an address, and how long one is waited for whose holder is not seen."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from hadoop.errors import HadoopError
from hadoop.local import ports

Address = tuple[str, int]
ASIDE = "127.1.254"
"""No subnet that a cluster would choose by itself, as one does in tests that run beside."""


def test_an_address_listens_while_a_server_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        assert ports.is_listening(address)
    assert not ports.is_listening(address)


@pytest.fixture
def unseen() -> Iterator[tuple[Address, Callable[[], None]]]:
    """An address at which a socket listens that no process holds, as of one that is just ending, and what frees it."""
    one, other = socket.socketpair()
    with closing(one), closing(other), socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        socket.send_fds(one, [b"x"], [server.fileno()])  # on its way, it is in no process
        server.close()
        yield address, other.close


def test_a_port_is_free_a_moment_after_its_holder_was_last_seen(
    unseen: tuple[Address, Callable[[], None]],
) -> None:
    address, free = unseen
    assert ports.find_taken([address]) == address
    ending = threading.Timer(0.5, free)
    ending.start()

    with ports.claim(ASIDE, [address], patience=300):
        ending.join()


def test_a_port_that_stays_taken_is_refused(unseen: tuple[Address, Callable[[], None]]) -> None:
    address, _ = unseen
    refused = pytest.raises(HadoopError, match="is in use by a process of another user")
    with refused, ports.claim(ASIDE, [address], patience=0.5):
        pass


def test_a_port_whose_holder_is_seen_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        begun = time.monotonic()
        refused = pytest.raises(HadoopError, match=f"is in use by pid {os.getpid()} ")
        with refused, ports.claim(ASIDE, [server.getsockname()], patience=300):
            pass
    assert time.monotonic() - begun < 200
