"""The calls about tunnels, and the ends that they give. Standard library only."""

from __future__ import annotations

import http.client
import socket
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, repeat

from infosvc.wire.connection import Call, error_from
from infosvc.wire.errors import InfoError, NotFound, NotReady, Unreachable
from infosvc.wire.service_calls import ServiceCalls, query_of, segment
from infosvc.wire.tunnel.described import Tunnel, TunnelBody
from infosvc.wire.tunnel.frames import Frame, take_whole

SILENCE_SECONDS = 15.0
"""The service says something every 5 s; after three times that its connection is dead."""
AGAIN_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Between attempts at sending what the service has no room for; the last again and again."""
MOST_FAILURES = 3
"""In a row, until a service that gives no answer has gone."""
LEAVE_SECONDS = 5.0
"""How long the end of a tunnel is waited for that another thread brings about."""
MOST_SENT_BYTES = 1 << 18
"""Of one call."""
MOST_UNSENT_BYTES = 1 << 25
"""Twice what 64 lines have on their way by their windows."""
_PIECE_BYTES = 1 << 16


class TunnelCalls(ServiceCalls):
    """Opens tunnels to tasks and takes part in them, as the same caller as a client and over its connections."""

    def __init__(self, client: ServiceCalls) -> None:
        self.url, self._connections, self._base = client.url, client._connections, client._base
        self._token, self._retries = client._token, client._retries

    def open(self, task_id: str) -> TunnelEnd:
        """A tunnel to the runner of a task; Conflict when its program does not run, or there are too many tunnels."""
        made = self._read(
            self._call("POST", "/tunnels", TunnelBody(task_id).to_json(), repeatable=False), Tunnel.from_json
        )
        try:
            return TunnelEnd(self, made)
        except InfoError:
            with suppress(InfoError):
                self.end(made)
            raise

    def waiting(self, task_id: str = "", seconds: float = 0) -> list[Tunnel]:
        """Tunnels that wait for the runners of their tasks, or of one task; as soon as there are, within `seconds`.

        A client with less patience is answered in half of it.
        """
        within = min(seconds, self._connections.timeout / 2)
        path = "/tunnels" + query_of(task_id=task_id or None, seconds=within or None)
        return self._ask(path, lambda told: [Tunnel.from_json(one) for one in told["tunnels"]])

    def join(self, tunnel: Tunnel) -> TunnelEnd:
        """The other end of a tunnel, for the runner of its task."""
        return TunnelEnd(self, tunnel)

    def read(self, tunnel: Tunnel) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Open what comes out of a tunnel; the caller closes both."""
        call = Call("GET", self._base + _path(tunnel), None, self._headers())
        connection, answer = self._connections.open(call, SILENCE_SECONDS)
        if answer.status == 200:
            return connection, answer
        try:
            refusal: InfoError = error_from(answer.status, answer.read(_PIECE_BYTES))
        except (OSError, http.client.HTTPException) as error:
            refusal = self._connections.unreachable(error)
        connection.close()
        raise refusal

    def write(self, tunnel: Tunnel, begin: int, content: bytes) -> None:
        """Put frames into a tunnel behind the first `begin` bytes; NotReady when there is no room for them now.

        Whoever calls it repeats it, which sends nothing twice.
        """
        headers = self._headers() | {"Content-Type": "application/octet-stream"}
        path = self._base + _path(tunnel) + query_of(begin=str(begin))
        self._json(self._connections.ask(Call("POST", path, content, headers), 0))

    def end(self, tunnel: Tunnel) -> None:
        """End a tunnel."""
        self._delete(_path(tunnel))


def _path(tunnel: Tunnel) -> str:
    return f"/tunnels/{segment(tunnel.tunnel_id)}"


class TunnelEnd(Iterator[list[Frame]]):
    """One end of a tunnel: iterate over what comes from the other end, and `send` what goes there.

    The iteration ends with the tunnel, whatever ends it. Any thread may send: one of its own puts what waits into as
    few calls as it fits in, so that a slow network costs time for each call and not for each frame.
    """

    def __init__(self, calls: TunnelCalls, tunnel: Tunnel) -> None:
        """Begin to read; InfoError when that cannot be."""
        self.tunnel = tunnel
        self._calls = calls
        self._changed = threading.Condition()
        self._unsent: deque[bytes] = deque()
        self._waiting = 0
        self._is_over = self._is_closed = False
        self._has_left = threading.Event()
        self._left = bytearray()
        self._connection, self._answer = calls.read(tunnel)
        threading.Thread(target=self._write, name="tunnel's writer", daemon=True).start()

    def __enter__(self) -> TunnelEnd:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> list[Frame]:
        while piece := self._read():
            self._left += piece
            if whole := take_whole(self._left):
                return whole
        self._stop()
        raise StopIteration

    def send(self, frames: Iterable[Frame]) -> None:
        """Have frames sent; it never waits, as lines bound what is on its way. NotFound once the tunnel is over."""
        encoded = [frame.encode() for frame in frames]
        with self._changed:
            self._waiting += sum(map(len, encoded))
            self._is_over = self._is_over or self._waiting > MOST_UNSENT_BYTES
            self._changed.notify_all()
            if self._is_over:
                raise NotFound("the tunnel has ended", "tunnel_id")
            self._unsent += encoded

    def close(self) -> None:
        """End the tunnel for both ends."""
        self._stop()
        with self._changed:
            is_first, self._is_closed = not self._is_closed, True
        if is_first:
            self._leave()
            self._has_left.set()
        self._has_left.wait(LEAVE_SECONDS)

    def _leave(self) -> None:
        with suppress(InfoError):
            self._calls.end(self.tunnel)
        with suppress(OSError):
            if (file := self._connection.sock) is not None:
                file.shutdown(socket.SHUT_RDWR)  # closing alone would wait for whoever reads
            self._answer.close()
        self._connection.close()

    def _stop(self) -> None:
        """Send nothing more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _write(self) -> None:
        """Send what waits; where that fails the tunnel ends, as what stands behind a gap would mean something else."""
        sent = 0
        with suppress(InfoError):
            while piece := self._next_piece():
                self._post(piece, sent)
                sent += len(piece)
        self.close()

    def _next_piece(self) -> bytes:
        """The frames of the next call, as soon as there are some; nothing once the tunnel is over."""
        piece = bytearray()
        with self._changed:
            self._changed.wait_for(lambda: self._unsent or self._is_over)
            while self._unsent and len(piece) + len(self._unsent[0]) <= MOST_SENT_BYTES and not self._is_over:
                piece += self._unsent.popleft()
            self._waiting -= len(piece)
        return bytes(piece)

    def _post(self, piece: bytes, sent: int) -> None:
        """Put it behind what was sent before, as soon as there is room. InfoError when that cannot be any more."""
        failures = 0
        for pause in chain(AGAIN_SECONDS, repeat(AGAIN_SECONDS[-1])):
            try:
                self._calls.write(self.tunnel, sent, piece)
                return
            except NotReady:
                failures = 0
            except Unreachable:
                failures += 1
                if failures > MOST_FAILURES:
                    raise
            with self._changed:
                if self._changed.wait_for(lambda: self._is_over, pause):
                    return

    def _read(self) -> bytes:
        try:
            return self._answer.read1(_PIECE_BYTES)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return b""
