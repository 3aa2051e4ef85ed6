"""Whether a browser's call comes from our own pages: it shows us its cookies whichever site made it call."""

from __future__ import annotations

import hmac
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
    if origin is not None and not is_own_origin(origin, environ):
        raise _from_elsewhere("Origin", origin)


def is_own_origin(origin: str, environ: Environ) -> bool:
    """Whether an origin is this service; a proxy may speak https for it, but none speaks http for one with TLS."""
    scheme, _, host = origin.partition("://")
    known = scheme in ("https", environ.get("wsgi.url_scheme"))
    return known and host.lower() == str(environ.get("HTTP_HOST", "")).lower()


def port_of(environ: Environ) -> str:
    """The port by which a call names us, empty when it names none."""
    port = str(environ.get("HTTP_HOST", "")).rpartition(":")[2]
    return port if port.isascii() and port.isdecimal() and len(port) <= LONGEST_PORT else ""


def _from_elsewhere(header: str, value: Any) -> Forbidden:
    return Forbidden(
        f"{header} is {str(value)[:200]!r}: only this service's own pages may log in, or make changes by cookie; a "
        "proxy before it must pass on the Host that browsers ask for",
        header,
    )
