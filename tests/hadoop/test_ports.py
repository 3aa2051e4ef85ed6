"""Whether somebody serves an address."""

from __future__ import annotations

import socket

from hadoop.local import ports


def test_an_address_listens_while_a_server_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        assert ports.is_listening(address)
    assert not ports.is_listening(address)
