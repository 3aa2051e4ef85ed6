"""Requests to daemons, over connections that may stay open, with a ticket where a daemon asks for one.

What a daemon gives whoever has shown a ticket (the cookie hadoop.auth) is shown to this daemon only: by the rules of
the web it would also go to others of its host, which would refuse it, and put theirs in its place.

A ticket is shown to nobody who is not trusted with it: whoever gets one can show it to another daemon of the same host
at once, as if he were its owner, and users of a cluster may run programs on its nodes, and lead readers there.
"""

from __future__ import annotations

import os
import ssl
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from email.message import Message
from functools import lru_cache
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from infosvc.wire.bounded_answer import answer_by, new_connection, read_whole

_COOKIE = "hadoop.auth="
_MOST_COOKIES = 4096
_TICKET_SECONDS = 10.0
"""How long Kerberos may take for a ticket, whatever more time there is for a page."""
_cookies: dict[str, str] = {}
"""By daemon (scheme://host:port), for the whole process, which is one user to all of them."""
Body = bytes | Iterable[bytes] | None
Trusts = Callable[[str], bool]
"""Whether a daemon (scheme://host:port) may be shown a ticket; it is called only when one asks for it."""


class Unreached(OSError):
    """There was no connection, so nothing of a body was sent."""


@dataclass(frozen=True)
class Limits:
    """Seconds to connect, seconds until the next bytes, seconds for the whole page, and the size of a page in bytes.

    Where several masters are known and none is active, one is waited for `patience` seconds.
    """

    connect: float = 5.0
    silence: float = 5.0
    seconds: float = 60.0
    size_bytes: int = 64 * 1024 * 1024
    patience: float = 0.0


@dataclass(frozen=True)
class Answer:
    """What a daemon answers to one request; `reason` is what stands behind the status, `origin` whose answer it is."""

    status: int
    headers: Message
    content: bytes
    reason: str = ""
    origin: str = ""


@dataclass(frozen=True)
class _Request:
    method: str
    parts: SplitResult
    body: Body = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"{self.parts.scheme}://{self.parts.netloc}"

    def send(self, connection: HTTPConnection) -> None:
        path = f"{self.parts.path or '/'}{'?' if self.parts.query else ''}{self.parts.query}"
        connection.request(self.method, path, body=self.body, headers=dict(self.headers))


class Connections:
    """Of connections to each of the `origins` (scheme://host:port), up to `kept` stay open for the next request.

    Without `trusts`, the origins are shown tickets and nobody else. Any number of threads may ask.
    """

    def __init__(self, origins: Iterable[str], kept: int, trusts: Trusts | None = None) -> None:
        self._kept = kept
        self._idle: dict[str, deque[HTTPConnection]] = {origin: deque() for origin in origins}
        self._trusts = trusts or self._idle.__contains__
        weakref.finalize(self, _close_all, self._idle)

    def send(self, method: str, url: str, body: Body, limits: Limits, deadline: float) -> Answer:
        """Get the answer to one request, until a deadline in monotonic seconds.

        Whoever is not trusted with a ticket answers 401 when he asks for one. NoTicket when there is none; OSError,
        HTTPException.
        """
        request = _Request(method, urlsplit(url), body)
        cookie = _cookies.get(request.origin)
        answer = self._try(replace(request, headers={"Cookie": cookie}) if cookie else request, limits, deadline)
        if not asks_for_ticket(answer) or not self._trusts(request.origin):
            return answer
        _cookies.pop(request.origin, None)
        if body is not None and not isinstance(body, bytes):
            return answer
        from hadoop.rest import spnego  # where no daemon asks for it, nothing of it is needed

        patience = min(_TICKET_SECONDS, max(0.0, deadline - time.monotonic()))
        shown = f"Negotiate {spnego.make_token(request.parts.hostname or '', patience)}"
        answer = self._try(replace(request, headers={"Authorization": shown}), limits, deadline)
        _keep_cookie(request.origin, answer)
        return answer

    def _try(self, request: _Request, limits: Limits, deadline: float) -> Answer:
        idle = self._idle.get(request.origin)
        if idle and (kept := _take(idle)):
            try:
                return self._exchange(kept, request, limits, deadline)
            except (ConnectionError, ssl.SSLError):
                pass  # the daemon has closed it meanwhile
        return self._exchange(_new_connection(request, limits), request, limits, deadline)

    def _exchange(self, connection: HTTPConnection, request: _Request, limits: Limits, deadline: float) -> Answer:
        """Send one request on a connection, and keep that for the next one or close it."""
        idle = self._idle.get(request.origin)
        keep = False
        try:
            request.send(connection)
            if request.body is not None:  # which may have taken all the time there was
                deadline = max(deadline, time.monotonic() + limits.silence)
            with answer_by(connection, deadline, limits.silence) as response:
                content = read_whole(response, limits.size_bytes)
                keep = idle is not None and not response.will_close and len(idle) < self._kept
                return Answer(response.status, response.headers, content, response.reason, request.origin)
        finally:
            if keep and idle is not None:
                idle.append(connection)
            else:
                connection.close()


def asks_for_ticket(answer: Answer) -> bool:
    """Whether a daemon would show its page to whoever has a ticket."""
    if answer.status != 401:
        return False
    ways = answer.headers.get_all("WWW-Authenticate") or ()
    return any(way.strip().lower().startswith("negotiate") for way in ways)


def _keep_cookie(origin: str, answer: Answer) -> None:
    """Keep what a daemon gave in exchange for a ticket.

    Where there is no Kerberos a daemon gives one as well, for the name in `user.name`: shown again, it would stand for
    this name whoever asks next.
    """
    given = [one.partition(";")[0].strip() for one in answer.headers.get_all("Set-Cookie") or ()]
    cookie = next((one for one in given if one.startswith(_COOKIE)), None)
    if answer.status != 401 and cookie and cookie.removeprefix(_COOKIE).strip('"'):
        while len(_cookies) >= _MOST_COOKIES:
            _cookies.pop(next(iter(_cookies)), None)
        _cookies[origin] = cookie


def _take(idle: deque[HTTPConnection]) -> HTTPConnection | None:
    try:
        return idle.pop()
    except IndexError:
        return None


def _new_connection(request: _Request, limits: Limits) -> HTTPConnection:
    parts = request.parts
    if parts.scheme not in ("http", "https") or not parts.hostname:
        # Never the whole of it: a NameNode writes tokens into what it leads to.
        raise ValueError(f"{request.origin!r} is not a web address")
    tls = _trust() if parts.scheme == "https" else None
    connection = new_connection(parts.hostname, parts.port, limits.connect, tls)
    if request.body is not None:
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise Unreached(str(error) or type(error).__name__) from error
        connection.sock.settimeout(limits.silence)  # a piece of it may take longer than a connection
    return connection


def _trust() -> ssl.SSLContext:
    """Whom this system trusts, or the file of SSL_CERT_FILE: read again when that has changed."""
    file = os.environ.get("SSL_CERT_FILE", "")
    try:
        changed = Path(file).stat().st_mtime_ns if file else 0
    except OSError:
        changed = 0
    return _make_context((file, os.environ.get("SSL_CERT_DIR", ""), changed))


@lru_cache(maxsize=4)
def _make_context(_of: tuple[str, str, int]) -> ssl.SSLContext:
    """Made once for many connections: it takes some 20 ms to read all authorities."""
    return ssl.create_default_context()


def _close_all(connections: Mapping[str, deque[HTTPConnection]]) -> None:
    for idle in connections.values():
        while idle:
            idle.pop().close()
