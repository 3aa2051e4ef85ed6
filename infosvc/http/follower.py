"""What a service answers while another one has the database that they share, until its own turn comes.

It passes reads on to the active service, whose answer must be here within a second: so no age in it is more than a
second too low. Everything else is refused, with the address of the active service.
"""

from __future__ import annotations

import gc
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from socket import AF_INET6
from typing import Any

from infosvc.access.audit_key import NUMBER, refuse_missing, refuse_other
from infosvc.http import server as active
from infosvc.settings import Settings
from infosvc.state.claim import LOOK_SECONDS, Turn
from infosvc.state.database import parse_url
from infosvc.state.single_instance import InUse
from infosvc.wire.bounded_answer import answer_by, new_connection, read_whole
from infosvc.wire.connection import ACTIVE, API, place_of
from infosvc.wire.errors import NotReady
from infosvc.wire.http_server import RETRY_AFTER, Handler, Reply, Server

RELAY_SECONDS = 1.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds until a follower that could not take over tries again; twice as many each time."""
LIVE = "/healthz"
_REFUSED = ("/readyz", f"{API}/events")  # who asks for these wants to know whether this service is active, or stay
_OF_ONE_CONNECTION = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "expect",
        "host",
        "keep-alive",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_FORWARDED = "X-Forwarded-For"
_RELAYED = "Nodewise-Relayed"  # what has this came from another service, which may follow this one
_log = logging.getLogger(__name__)
_FAILURES = (OSError, ValueError, HTTPException)  # a ValueError: a header that cannot be passed on


class Follower:
    """A service that follows another one; `run` answers until the database may be opened."""

    def __init__(self, settings: Settings, host: str, port: int, turn: Turn) -> None:
        """Take the port (0: a free one); InvalidInput when it cannot be had, or the other one's key is not here."""
        if settings.audit_key is not None:
            refuse_missing(Path(settings.audit_key))
            refuse_other(Path(settings.audit_key), turn.stored(NUMBER))
        with active.listen(host, port, settings.unread_seconds) as listener:
            self.port = listener.getsockname()[1]
        self._turn = turn
        self._server = _make_server(settings, host, self.port)
        self.url = active.url_of(host, self.port, settings)

    def run(self, pause: float = 0.0) -> None:
        """Answer until the turn has come, at least for `pause` seconds, then let the port go."""
        thread = threading.Thread(target=self._server.serve_forever, args=(LOOK_SECONDS,), name="follower")
        thread.start()
        try:
            time.sleep(pause)
            while not self._turn.has_come():
                time.sleep(LOOK_SECONDS)
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


class Relay:
    """Asks the active service what somebody asks this one; `url` is where it is."""

    def __init__(self, settings: Settings) -> None:
        self.url = settings.shared_with
        self._place = place_of(self.url)
        self._most_bytes = 4 * settings.max_answer
        self._tls = ssl.create_default_context(cafile=settings.agent_ca) if self._place.scheme == "https" else None

    def ask(self, method: str, path: str, headers: dict[str, str]) -> Reply:
        """Its answer; NotReady when that is not here within a second."""
        connection = new_connection(self._place.host, self._place.port, RELAY_SECONDS, self._tls)
        try:
            deadline = time.monotonic() + RELAY_SECONDS
            connection.request(method, path, headers=headers)
            answer = answer_by(connection, deadline)
            return _as_reply(answer, read_whole(answer, self._most_bytes))
        except _FAILURES as error:
            raise NotReady(
                f"{self.url} did not answer within {RELAY_SECONDS:g} s ({error}), and this service only follows it",
                remedy="try again: if it is away, this service takes over",
            ) from error
        finally:
            connection.close()


def open_in_turn(settings: Settings, host: str, port: int, say: Callable[[str], None], **how: Any) -> active.Server:
    """The active service, as soon as a database that it shares may be opened; until then this follows the other.

    `say` is told what this does meanwhile. The errors are those of the Server; a follower that cannot open the database
    goes on, and says so.
    """
    if not settings.shared_with:
        return active.Server(settings, host, port, **how)
    turn, follows, pause = Turn(parse_url(settings.database)), False, 0.0
    try:
        while True:
            if pause or not turn.has_come():
                follower = Follower(settings, host, port, turn)
                port, follows = follower.port, True
                if not pause:
                    say(f"following {settings.shared_with}, listening on {follower.url}")
                with _garbage_taken():
                    follower.run(pause)
            try:
                return active.Server(settings, host, port, **how)
            except InUse:  # the other one was quicker
                pause = 0.0
            except NotReady as error:
                if not follows:
                    raise
                pause = min(2 * pause or SHORTEST_PAUSE, LONGEST_PAUSE)
                _log.warning("it is tried again in %g s: %s", pause, error)
    finally:
        turn.close()


@contextmanager
def _garbage_taken() -> Iterator[None]:
    """Whoever starts a service does without garbage collection for a moment; a follower may follow for weeks."""
    was_on = gc.isenabled()
    gc.enable()
    try:
        yield
    finally:
        if not was_on:
            gc.disable()


class _FollowerServer(Server):
    relay: Relay


class _FollowerServer6(_FollowerServer):
    address_family = AF_INET6


class _FollowerHandler(Handler):
    """Answers one connection."""

    server: _FollowerServer

    def get(self) -> None:
        path = self.path.partition("?")[0]
        if path == LIVE:
            self.reply(Reply(200, b'{"status":"ok"}'))
        elif path in _REFUSED or self.body_length() or _RELAYED in self.headers:
            self._refuse_call()
        else:
            self._pass_on()

    def parse_request(self) -> bool:
        """Read the head of a request, and refuse whatever is no read; what its body says is not read."""
        is_whole = super().parse_request()
        self.close_connection = True  # a connection that is kept would still be the follower's after its turn has come
        if is_whole and self.command != "GET":
            self._refuse_call()
        return is_whole and self.command == "GET"

    def _refuse_call(self) -> None:
        url = self.server.relay.url
        self._refuse(NotReady(f"this service follows {url}", remedy=f"call {url}, which is active"))

    def _pass_on(self) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_CONNECTION}
        caller = str(self.client_address[0])
        known = ", ".join(self.headers.get_all(_FORWARDED, []))
        headers = {name: value for name, value in headers.items() if name.lower() != _FORWARDED.lower()}
        headers |= {_FORWARDED: f"{known}, {caller}" if known else caller, _RELAYED: "yes"}
        try:
            self.reply(self.server.relay.ask(self.command, self.path, headers))
        except NotReady as error:
            self._refuse(error)

    def _refuse(self, error: NotReady) -> None:
        content = json.dumps({"error": {"code": error.code, "message": str(error), "field": None}}).encode()
        headers = {ACTIVE: self.server.relay.url, RETRY_AFTER: "1"}
        self.reply(Reply(error.status, b"" if self.command == "HEAD" else content, headers=headers))


def _make_server(settings: Settings, host: str, port: int) -> _FollowerServer:
    kind = _FollowerServer6 if ":" in host else _FollowerServer
    tls = None
    if settings.tls_cert:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(settings.tls_cert, settings.tls_key)
    most = settings.threads  # all callers are strangers here, since only the active service knows tokens
    server = kind((host, port), _FollowerHandler, settings.unread_seconds, tls=tls, most_strangers=most)
    server.relay = Relay(settings)
    return server


def _as_reply(answer: HTTPResponse, content: bytes) -> Reply:
    """The answer as this service sends it on."""
    passed = {name: value for name, value in answer.headers.items() if name.lower() not in _OF_ONE_CONNECTION}
    kind = passed.pop("Content-Type", "")
    return Reply(answer.status, content, kind, passed)
