"""The service listening on one address, in this process: granian speaks HTTP, Python answers.

Two calls make up nearly all traffic, a report and a read of one name. The fast lane answers them before Flask does;
whatever is unusual about them goes on to Flask, which answers it in full.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from granian._futures import _new_cbscheduler
from granian._granian import SocketHolder, WorkerSignal, WSGIWorker
from granian.http import HTTP1Settings
from granian.wsgi import ResponseIterWrap

from infosvc.access.roles import is_loopback
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup
from infosvc.http.app import close_app, create_app
from infosvc.http.connections import Connections
from infosvc.http.fast_path import FastLane
from infosvc.settings import Clock, Settings
from infosvc.wire.errors import InvalidInput

BACKLOG = 1024  # connections that the kernel holds until they are accepted
HEADER_SECONDS = 10
DRAIN_SECONDS = 10.0  # how long requests that run may take when the service ends
IDLE_THREAD_SECONDS = 5

_iterator: Any = ResponseIterWrap
_ENVIRON = {
    "GATEWAY_INTERFACE": "CGI/1.1",
    "SCRIPT_NAME": "",
    "SERVER_SOFTWARE": "nodewise",
    "wsgi.errors": sys.stderr,
    "wsgi.input_terminated": True,
    "wsgi.multiprocess": False,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.version": (1, 0),
}


class Server:
    """The service listening on one address; `run` serves until `stop` is called."""

    def __init__(
        self, settings: Settings, host: str, port: int, clock: Clock | None = None, others: Sequence[CallGroup] = ()
    ) -> None:
        """Take the port (0: a free one), then open the database; `others` are those of create_app.

        InvalidInput when the port cannot be had, or when other machines could read without a token.
        """
        if settings.open_reading and not is_loopback(host):
            raise InvalidInput(
                f"{host} can be reached from other machines, so reading cannot be open there",
                "open_reading",
                remedy="set open_reading to no",
            )
        with listen(host, port, settings.unread_seconds) as listener:
            port = listener.getsockname()[1]
            self.app = create_app(settings, clock, others)
            self._lane = FastLane(self.app)
            parts = components_of(self.app)
            self._connections = Connections(port, (parts.bodies, parts.strangers), self._lane.running)
            # From here on the descriptor is granian's to close.
            self._worker = _worker(listener.detach(), settings, self._connections.most)
        self._signal = WorkerSignal()
        self._ending, self._end = socket.socketpair()
        self._end.setblocking(False)
        self._claim = parts.store.claim
        if self._claim is not None:
            self._claim.when_lost(self.stop)
        self.url = url_of(host, port, settings)

    @property
    def is_superseded(self) -> bool:
        """Whether another service has taken the database over."""
        return self._claim is not None and self._claim.is_lost

    def run(self) -> None:
        """Serve until told to end, then finish the requests that run and store what they wrote."""
        gc.collect()
        gc.freeze()  # what the service starts with stays; looking through it again and again costs readers time
        loop = asyncio.new_event_loop()  # granian's scheduler wants one; nothing of ours runs in it
        answer = partial(_answer, self._lane, self._connections)
        self._connections.start()
        try:
            scheduler: Any = _new_cbscheduler
            self._worker.serve_mtr(scheduler(loop, answer, impl_asyncio=True), loop, self._signal)
            self._ending.recv(1)
        finally:
            self._signal.set()
            components_of(self.app).tunnels.close()  # or callers who wait for one would hold up the drain
            self._lane.drain(DRAIN_SECONDS)
            self._connections.close()
            close_app(self.app)
            loop.close()
            self._ending.close()
            self._end.close()

    def stop(self) -> None:
        """End `run`, from another thread; nothing happens when it has ended already."""
        with suppress(OSError):
            self._end.send(b"\0")

    def stop_at(self, *numbers: signal.Signals) -> None:
        """Let each of these signals end `run`; for the main thread of a process whose only work is the service.

        Python runs a handler when the main thread does something, and one that sleeps does nothing: what came just
        before it fell asleep would never be heard. The byte that the interpreter itself writes wakes it in any case.
        """
        signal.set_wakeup_fd(self._end.fileno(), warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda *_: None)


class _Started:
    """WSGI's start_response: keeps what it is called with."""

    __slots__ = ("headers", "status")

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[tuple[str, str]] = []

    def __call__(self, status: str, headers: list[tuple[str, str]], _error: object = None) -> None:
        self.status = int(status[:3])
        self.headers = headers


def _answer(application: Any, connections: Connections, protocol: Any, scope: dict[str, Any]) -> int:
    """One request, as granian's own wrapper does it, but with nothing of this process's environment in it."""
    started = _Started()
    environ = _ENVIRON | scope
    answer = application(environ, started)
    if not connections.is_kept(environ):
        started.headers.append(("Connection", "close"))
    if isinstance(answer, list):
        protocol.response_bytes(started.status, started.headers, b"".join(answer))
    else:
        protocol.response_iter(started.status, started.headers, _iterator(answer))
    return started.status


def _worker(listener: int, settings: Settings, most_connections: int) -> Any:
    """One granian worker on a socket that is open already, as granian's own server makes it in its processes."""
    tls = settings.tls_cert is not None
    make: Any = WSGIWorker
    hold: Any = SocketHolder
    return make(
        1,
        (None, hold(listener, False, BACKLOG)),
        None,
        1,
        settings.threads,
        settings.threads,
        IDLE_THREAD_SECONDS,
        most_connections,
        "1",
        HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1000),
        None,
        None,
        tls,
        settings.tls_cert,
        settings.tls_key,
        None,
        "tls1.2",
        None,
        [],
        False,
        (None, None),
    )


def url_of(host: str, port: int, settings: Settings) -> str:
    """How a service on this address is called."""
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls_cert else 'http'}://{shown}:{port}"


def listen(host: str, port: int, unread_seconds: float) -> socket.socket:
    """A socket that listens there; InvalidInput when it cannot be had."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        # create_server adds the address to the system's words; a look-up has words of its own.
        plain = isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno
        why = os.strerror(plain) if plain else getattr(error, "strerror", error)
        raise InvalidInput(
            f"cannot listen on {host}:{port} ({why})",
            "port",
            remedy="stop what uses it, or choose another with --host and --port",
        ) from error
    # Its connections inherit both. Without this the body of an answer waits 40 ms for the word that its headers came.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # So the kernel ends a connection whose caller reads nothing, a watcher's for example, and one that lost its power.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(unread_seconds * 1000))
    listener.setblocking(False)
    return listener
