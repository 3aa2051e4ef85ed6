"""Events of the service as they happen, read from a stream that is opened again when it breaks.

Standard library only, so it travels to nodes and containers.
"""

from __future__ import annotations

import http.client
import json
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress

from infosvc.wire.answers import Event
from infosvc.wire.connection import Call, Connections, error_from, pause
from infosvc.wire.errors import AWAY, InfoError, Unreachable

SILENCE_SECONDS = 15.0  # the service says something every 5 s; after three times that its connection is dead
PATIENCE_SECONDS = 60.0

_Opened = tuple[http.client.HTTPConnection, http.client.HTTPResponse]


class EventStream(Iterator[Event]):
    """Iterates over events; opened when it is made, closed by `close`, the end of its `with`, or when it goes.

    A stream that breaks is opened again where it broke off, for `patience` seconds; what was missed then comes as an
    event of type gap. Raises an InfoError when the service refuses, or stays away for longer.
    """

    def __init__(self, connections: Connections, path: str, token: str | None, patience: float = PATIENCE_SECONDS):
        self._connections = connections
        self._path = path
        self._token = token
        self._patience = patience
        self._last_id = ""
        self._opened: list[_Opened] = []
        weakref.finalize(self, _close, self._opened)
        self._open()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> Event:
        while True:
            if not self._opened:
                raise StopIteration
            try:
                lines = self._block()
            except Unreachable:
                self._open_again()
                continue
            event = parse_event(lines)
            # A block may hold nothing but the position in the stream.
            self._last_id = next((line[4:] for line in lines if line.startswith("id: ")), self._last_id)
            if event is not None:
                return event

    def close(self) -> None:
        """End the stream; iterating over it ends too."""
        _close(self._opened)

    def _block(self) -> list[str]:
        """The lines up to the next empty one."""
        lines: list[str] = []
        _, response = self._opened[-1]
        while True:
            try:
                line = response.readline().decode()
            except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
                raise self._connections.unreachable(error) from error
            if not line:
                raise self._connections.unreachable(ConnectionError("the stream of events ended"))
            if line == "\n":
                return lines
            lines.append(line.rstrip("\n"))

    def _open(self) -> None:
        headers = {"Accept": "text/event-stream"}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        headers |= {"Last-Event-ID": self._last_id} if self._last_id else {}
        connection, response = self._connections.open(Call("GET", self._path, headers=headers), SILENCE_SECONDS)
        self._opened.append((connection, response))
        kind = response.headers.get_content_type()
        if response.status == 200 and kind == "text/event-stream":
            return
        try:
            refusal: InfoError = error_from(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            refusal = self._connections.unreachable(error)
        self.close()
        raise refusal

    def _open_again(self) -> None:
        self.close()
        give_up = time.monotonic() + self._patience
        attempt = 0
        while not self._opened:
            time.sleep(pause(attempt))
            attempt += 1
            try:
                self._open()
            except AWAY:
                if time.monotonic() > give_up:
                    raise


def parse_event(lines: Sequence[str]) -> Event | None:
    """One event from the lines of its block, None when the block is not an event (a comment, a position).

    >>> parse_event(["id: 7", "event: node", 'data: {"node_name": "n1", "state": "lost"}'])
    Event(id=7, type='node', data={'node_name': 'n1', 'state': 'lost'})
    """
    fields = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith(":"))
    if "data" not in fields:
        return None
    try:
        return Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
    except (KeyError, ValueError):
        return None


def _close(opened: list[_Opened]) -> None:
    while opened:
        connection, response = opened.pop()
        with suppress(OSError):
            response.close()
        connection.close()
