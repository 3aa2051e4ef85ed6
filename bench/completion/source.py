"""What the tasks that read get their data from: a server on this machine, which has no limits as workers have."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

BLOCK = random.Random(1).randbytes(1_000_003)  # noqa: S311 - the same bytes each time, nothing secret
"""A prime number of them, so that no step of a reader ends in the same bytes as the step before."""


class _Sender(BaseRequestHandler):
    def handle(self) -> None:
        with suppress(OSError):  # the reader has what it wants
            while True:
                self.request.sendall(BLOCK)


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def serve(address: str) -> Iterator[str]:
    """Send drawn bytes without end to each that connects; the HOST:PORT for train.py."""
    with _Server((address, 0), _Sender) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"{address}:{server.server_address[1]}"
        finally:
            server.shutdown()
