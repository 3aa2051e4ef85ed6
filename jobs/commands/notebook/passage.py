"""Connections of this machine that lead to a socket in the folder of a task, as those to a notebook do."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound
from infosvc.wire.tunnel.traffic import HEARD
from jobs.commands.task.task_tunnel import UserTunnel

UNUSED_SECONDS = 300.0
"""How long a tunnel stays that leads nothing: a user may have few of them."""
AGAIN_SECONDS = 0.5
PIECE_BYTES = 1 << 16


class Passage:
    """Leads connections to a socket by one tunnel, which is opened when there is need of it, and again when it is over.

    It is closed at the end of the `with`, and when it has led nothing for a while.
    """

    def __init__(
        self,
        client: InfoClient,
        task_id: str,
        name: str,
        say: Callable[[str], None],
        unused_seconds: float = UNUSED_SECONDS,
    ) -> None:
        """`name` is that of the socket, and `say` tells why connections fail."""
        self._client = client
        self._task_id = task_id
        self._name = name
        self._say = say
        self._said = ""
        self._unused_seconds = unused_seconds
        self._changing = threading.Lock()
        self._tunnel: UserTunnel | None = None
        self._led = 0
        self._closing: threading.Timer | None = None
        self._is_closed = False

    def __enter__(self) -> Passage:
        return self

    def __exit__(self, *_: object) -> None:
        with self._changing:
            self._is_closed = True
            self._close_tunnel()

    def serve(self, listener: socket.socket) -> None:
        """Lead each connection there, until the listener is closed."""
        while listener.fileno() >= 0:
            try:
                connection, _ = listener.accept()
            except OSError:  # such as too many open files, which passes
                time.sleep(AGAIN_SECONDS)
            else:
                threading.Thread(target=self._lead, args=(connection,), name="connection", daemon=True).start()

    def lead(self, connection: socket.socket) -> str:
        """Lead one there until either end closes it; why the other end has ended it, nothing if it need not say.

        InfoError when there can be no tunnel.
        """
        with connection, self._leading() as tunnel:
            user = _Connection(connection)
            line = tunnel.open({"socket": self._name}, user)
            try:
                while piece := connection.recv(PIECE_BYTES):
                    line.send(piece)
            except OSError:
                pass  # who had it here has gone
            except InfoError:  # the other end takes no more, and what it said last is still on its way to this one
                user.has_ended.wait()
            line.close()
            return user.why

    def _lead(self, connection: socket.socket) -> None:
        try:
            why = self.lead(connection)
        except InfoError as error:
            why = str(error)
        if why not in ("", HEARD["why"], self._said):  # with HEARD, a browser comes back or the task tells how it ended
            self._said = why
            self._say(why)

    @contextmanager
    def _leading(self) -> Iterator[UserTunnel]:
        """The tunnel, which stays at least until the end of the block."""
        with self._changing:
            tunnel = self._open()
            self._led += 1
        try:
            yield tunnel
        finally:
            with self._changing:
                self._led -= 1
                self._close_later()

    def _open(self) -> UserTunnel:
        if self._is_closed:
            raise NotFound("the way to the task is closed")
        if self._closing:
            self._closing.cancel()
        if self._tunnel is None or self._tunnel.has_ended:
            self._close_tunnel()
            self._tunnel = UserTunnel(self._client, self._task_id)
        return self._tunnel

    def _close_later(self) -> None:
        if not (self._led or self._is_closed):
            self._closing = threading.Timer(self._unused_seconds, self._close_unused)
            self._closing.daemon = True
            self._closing.start()

    def _close_unused(self) -> None:
        with self._changing:
            if not self._led:
                self._close_tunnel()

    def _close_tunnel(self) -> None:
        tunnel, self._tunnel = self._tunnel, None
        if tunnel:
            tunnel.close()


class _Connection:
    """A connection of this machine that has a line."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._is_gone = False
        self.why = ""
        self.has_ended = threading.Event()

    def take(self, content: bytes) -> None:
        try:
            self._connection.sendall(content)
        except OSError:
            self._is_gone = True
            raise

    def hear_size(self, columns: int, rows: int) -> None:
        """It has none."""

    def hear_end(self) -> None:
        """What came before is still taken."""

    def end(self, how: Mapping[str, Any]) -> None:
        """Hang up; that who had it here has gone needs no saying."""
        self.why = "" if self._is_gone else str(how.get("why", ""))
        self.has_ended.set()
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
