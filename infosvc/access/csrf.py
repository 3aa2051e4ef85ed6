"""Whether a browser's call comes from our own pages: it shows us its cookies whichever site made it call.

And by which name it calls: who owns a name can let it lead to this machine, and is of one origin with us then.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from functools import lru_cache
from typing import Any

from infosvc.wire.errors import Forbidden

Environ = dict[str, Any]

READING = frozenset({"GET", "HEAD", "OPTIONS"})
LONGEST_PORT = 5


def check_change(environ: Environ, csrf_token: str) -> None:
    """Let reads pass, and changes that our own pages make; Forbidden for any other."""
    if environ.get("REQUEST_METHOD") in READING:
        return
    check_origin(environ)
    shown = environ.get("HTTP_X_CSRF_TOKEN", "")
    if not hmac.compare_digest(shown.encode(), csrf_token.encode()):
        raise Forbidden(
            "a change that is made by cookie must carry the session's csrf_token in X-CSRF-Token",
            "X-CSRF-Token",
            remedy="load the page anew, or send `Authorization: Bearer TOKEN` instead of the cookie",
        )


def check_origin(environ: Environ) -> None:
    """Forbidden when the browser says that a page from elsewhere made it call; other programs say nothing of it."""
    site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
    if site not in (None, "same-origin"):
        raise _from_elsewhere("Sec-Fetch-Site", site)
    if origin is not None and not _is_own(origin, environ):
        raise _from_elsewhere("Origin", origin)


def is_called_locally(environ: Environ) -> bool:
    """Whether a call names no host, or none that strangers can own: an address, localhost, this machine.

    >>> [is_called_locally({"HTTP_HOST": said}) for said in ("127.0.0.1:8400", "[::1]:8400", "localhost", "a.example")]
    [True, True, True, False]
    """
    return _is_local(environ.get("HTTP_HOST", ""))


def port_of(environ: Environ) -> str:
    """The port by which a call names us, empty when it names none."""
    port = str(environ.get("HTTP_HOST", "")).rpartition(":")[2]
    return port if port.isascii() and port.isdecimal() and len(port) <= LONGEST_PORT else ""


@lru_cache(maxsize=256)
def _is_local(said: str) -> bool:
    host = said[1:].partition("]")[0] if said.startswith("[") else said.partition(":")[0]
    host = host.lower().rstrip(".")
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return "." not in host or host.endswith(".localhost") or host == socket.gethostname().lower()


def _is_own(origin: str, environ: Environ) -> bool:
    """Whether an origin is this service; a proxy may speak https for it, but none speaks http for one with TLS."""
    scheme, _, host = origin.partition("://")
    known = scheme in ("https", environ.get("wsgi.url_scheme"))
    return known and host.lower() == str(environ.get("HTTP_HOST", "")).lower()


def _from_elsewhere(header: str, said: Any) -> Forbidden:
    return Forbidden(
        f"{header} is {str(said)[:200]!r}: only this service's own pages may log in, or make changes by cookie; a "
        "proxy before it must pass on the Host that browsers ask for",
        header,
    )
