"""Which peers do not answer: real connections of which the kernel drops packets, and others that only stand still."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from learning.member.links import SILENT_SECONDS, Link, Links
from tests.dropped_packets import dropping, heal

HOST, OPENED_FROM = "127.0.0.7", "127.0.0.8"
SECONDS = 30.0
"""How long tests wait for a peer to be found; that takes a few seconds where nobody stands still."""
LOAD = b"x" * (1 << 16)


@pytest.fixture
def drop() -> Iterator[Callable[..., None]]:
    """Drops packets of a hook of the kernel, until the end of the test."""
    yield from dropping()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket, Links]]:
    """Who has opened a connection, who has taken it, and what looks at both."""
    with ExitStack() as stack:
        found = Links()
        server = stack.enter_context(socket.create_server((HOST, 0)))
        opened = stack.enter_context(socket.create_connection(server.getsockname(), source_address=(OPENED_FROM, 0)))
        taken = stack.enter_context(server.accept()[0])
        for one in (opened, taken):
            one.setblocking(False)
        yield opened, taken, found


def test_who_answers_is_not_complained_of_however_long_it_takes_nothing(
    pair: tuple[socket.socket, socket.socket, Links],
) -> None:
    opened, _, links = pair
    _fill(opened)

    until = time.monotonic() + SILENT_SECONDS + 2.0
    while time.monotonic() < until:
        assert not links.find_cut()
        time.sleep(0.2)


def test_a_peer_that_nobody_waits_for_is_found_once_the_kernel_asks(
    pair: tuple[socket.socket, socket.socket, Links], drop: Callable[..., None]
) -> None:
    _, taken, links = pair
    links.ask()
    time.sleep(1.5)
    assert not links.find_cut()

    drop("input", f"tcp dport {taken.getsockname()[1]}")

    assert _await_cut(links) <= {HOST, OPENED_FROM}


@pytest.mark.parametrize("hook", ["input", "output"])
@pytest.mark.parametrize("way", ["there", "back"])
def test_a_peer_that_does_not_answer_is_found_whichever_way_is_cut(
    pair: tuple[socket.socket, socket.socket, Links], drop: Callable[..., None], hook: str, way: str
) -> None:
    opened, taken, links = pair
    drop(hook, f"tcp {'dport' if way == 'there' else 'sport'} {taken.getsockname()[1]}")
    began = time.monotonic()
    opened.send(LOAD)

    assert _await_cut(links) == {HOST}
    assert time.monotonic() - began >= SILENT_SECONDS - 0.5
    assert not Links().find_cut(), "what was opened before is not looked at"


def test_a_peer_that_cannot_be_connected_to_is_found(drop: Callable[..., None]) -> None:
    links = Links()
    with socket.create_server((HOST, 0)) as server, socket.socket() as opened:
        drop("input", f"tcp dport {server.getsockname()[1]}")
        opened.setblocking(False)
        opened.connect_ex(server.getsockname())

        assert _await_cut(links) == {HOST}


def test_a_healed_connection_is_complained_of_no_more(
    pair: tuple[socket.socket, socket.socket, Links], drop: Callable[..., None]
) -> None:
    opened, taken, links = pair
    drop("input", f"tcp dport {taken.getsockname()[1]}")
    opened.send(LOAD)
    assert _await_cut(links)

    heal()
    until = time.monotonic() + SECONDS
    while links.find_cut():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("link", "is_cut"),
    [
        (Link(1, 3, 0, 3.0), True),
        (Link(1, 0, 3, 3.0), True),
        (Link(1, 2, 2, 60.0), False),
        (Link(1, 9, 9, 2.9), False),
        (Link(2, 2, 0, 9e6), True),
        (Link(2, 1, 0, 9e6), False),
    ],
)
def test_a_peer_is_cut_off_after_it_was_asked_often_and_for_long(link: Link, is_cut: bool) -> None:
    assert link.is_cut is is_cut


def _fill(one: socket.socket) -> None:
    """Send until nothing more is taken."""
    while True:
        try:
            one.send(LOAD)
        except BlockingIOError:
            return


def _await_cut(links: Links) -> frozenset[str]:
    until = time.monotonic() + SECONDS
    while not (found := links.find_cut()):
        assert time.monotonic() < until, "nobody is found"
        time.sleep(0.1)
    return found
