"""Sessions: a browser shows a token once, and from then on a cookie in its place.

They live in memory alone, under the SHA-256 of what the cookie says, so nothing that is kept could be shown instead.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass

from infosvc.access.csrf import Environ, port_of
from infosvc.access.roles import Caller, sha256
from infosvc.settings import Clock

_COOKIE = "nodewise_session"
OF_THIS_HOST = "__Host-"
SECONDS = 12 * 3600.0
MOST = 1_000
MOST_OF_ONE = 20  # of one token, so that nobody can push out other people's


def is_encrypted(environ: Environ) -> bool:
    """Whether a browser speaks https with us; a proxy may do so for us, and then the page's origin is what tells."""
    return environ.get("wsgi.url_scheme") == "https" or str(environ.get("HTTP_ORIGIN", "")).startswith("https://")


def cookie_name(environ: Environ) -> str:
    """What a new cookie is called: browsers show it to every port of a host, and another service there has its own.

    Over https its name makes browsers take it from this very host alone.

    >>> cookie_name({"HTTP_HOST": "127.0.0.1:8400"})
    'nodewise_session_8400'
    """
    port = port_of(environ)
    name = f"{_COOKIE}_{port}" if port else _COOKIE
    return f"{OF_THIS_HOST}{name}" if is_encrypted(environ) else name


def cookie_names(environ: Environ) -> tuple[str, ...]:
    """What a cookie that is shown may be called; without https of our own, a proxy may have brought either."""
    name = cookie_name(environ)
    if environ.get("wsgi.url_scheme") == "https":
        return (name,)
    plain = name.removeprefix(OF_THIS_HOST)
    return f"{OF_THIS_HOST}{plain}", plain


@dataclass(frozen=True)
class Session:
    """Who calls, what changes must carry, and when it ends: in Unix seconds for people, in monotonic ones for us."""

    caller: Caller
    csrf_token: str
    expires_at: float
    ends_at: float


class Sessions:
    """All sessions that go on; any thread may call. Whether their tokens still count, the authenticator knows."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, Session] = {}  # the oldest first

    def begin(self, caller: Caller, until: float | None) -> tuple[str, Session]:
        """A new session and the text of its cookie; `until` (Unix seconds) its token counts, None: for ever."""
        text, now = secrets.token_urlsafe(32), self._clock.wall()
        expires_at = now + SECONDS if until is None else min(now + SECONDS, until)
        ends_at = self._clock.monotonic() + expires_at - now
        key = sha256(text)
        session = Session(caller._replace(session=key), secrets.token_urlsafe(32), expires_at, ends_at)
        with self._lock:
            self._make_room(caller.token_id)
            self._open[key] = session
        return text, session

    def find(self, text: str) -> Session | None:
        """The session of a cookie, None when it has ended or never was."""
        return self.find_by_key(sha256(text))

    def find_by_key(self, key: str) -> Session | None:
        """The session that a caller of it names, None when it has ended."""
        session = self._open.get(key)
        if session is not None and self._clock.monotonic() >= session.ends_at:
            self.end(key)
            return None
        return session

    def end(self, key: str) -> None:
        """End one at once; nothing happens when it has ended before."""
        with self._lock:
            self._open.pop(key, None)

    def __len__(self) -> int:
        return len(self._open)

    def _make_room(self, token_id: str) -> None:
        """Leave out what is over, then the oldest of the token that has too many, then the oldest of all."""
        now = self._clock.monotonic()
        self._open = {key: session for key, session in self._open.items() if now < session.ends_at}
        own = [key for key, session in self._open.items() if session.caller.token_id == token_id]
        for key in own[: max(0, len(own) + 1 - MOST_OF_ONE)]:
            del self._open[key]
        for key in list(self._open)[: max(0, len(self._open) + 1 - MOST)]:
            del self._open[key]
