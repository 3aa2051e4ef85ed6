"""`python -m learning.member.store_server HOST`: a store for one generation after another, until its input ends.

It reads a secret from its first line of input and prints its port. A request is a line of JSON, and so is its answer:

    {"secret": ..., "set": NAME, "value": HEX}         {}
    {"secret": ..., "get": NAME, "seconds": S}         {"value": HEX}, or {"value": null} when it is not there after S
    {"secret": ..., "keep": START}                     {}; values whose names begin otherwise are forgotten

Standard library only, so it is small and begins at once.
"""

from __future__ import annotations

import hmac
import json
import os
import select
import socketserver
import sys
import threading
import time

MOST_LINE_BYTES = 1 << 18
"""Of 256 members each tells gloo 70 kB."""
MOST_VALUES = 1 << 20
MOST_SECONDS = 5.0
"""A request waits no longer for a value."""
STRANGER_SECONDS = 10.0
"""How long a connection may take for its first request."""
IDLE_SECONDS = 120.0
LOOK_SECONDS = 1.0
"""Between two looks for the member: a process that it has forked may hold its end of the input."""


class Values:
    """What members have told each other."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._changed = threading.Condition()

    def put(self, name: str, value: str) -> None:
        """Keep it; ValueError when there are too many."""
        with self._changed:
            if len(self._values) >= MOST_VALUES:
                raise ValueError("the store is full")
            self._values[name] = value
            self._changed.notify_all()

    def get(self, name: str, seconds: float) -> str | None:
        """Wait for it so long; None when it is not there."""
        until = time.monotonic() + min(seconds, MOST_SECONDS)
        with self._changed:
            while name not in self._values and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._values.get(name)

    def keep(self, start: str) -> None:
        """Forget all whose names begin otherwise."""
        with self._changed:
            self._values = {name: value for name, value in self._values.items() if name.startswith(start)}


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.connection.settimeout(STRANGER_SECONDS)
        try:
            while line := self.rfile.readline(MOST_LINE_BYTES):
                self.wfile.write(json.dumps(self._answer(json.loads(line))).encode() + b"\n")
                self.connection.settimeout(IDLE_SECONDS)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return  # whoever asks otherwise is not one of ours

    def _answer(self, asked: dict[str, object]) -> dict[str, str | None]:
        if not hmac.compare_digest(str(asked["secret"]).encode(), self.server.secret):
            raise ValueError("a stranger")
        if "set" in asked:
            self.server.values.put(str(asked["set"]), str(asked["value"]))
            return {}
        if "keep" in asked:
            self.server.values.keep(str(asked["keep"]))
            return {}
        return {"value": self.server.values.get(str(asked["get"]), float(str(asked["seconds"])))}


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, host: str, secret: bytes) -> None:
        self.secret = secret
        self.values = Values()
        super().__init__((host, 0), _Handler)


def main(host: str) -> None:
    """Serve until whoever started this is gone."""
    parent = os.getppid()
    secret = sys.stdin.readline().strip().encode()
    server = _Server(host, secret)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.5}, daemon=True).start()
    print(server.server_address[1], flush=True)
    while os.getppid() == parent:
        readable, _, _ = select.select([sys.stdin], [], [], LOOK_SECONDS)
        if readable and not sys.stdin.read(1):
            return


if __name__ == "__main__":
    main(sys.argv[1])
