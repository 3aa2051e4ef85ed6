"""Whether a call comes straight from a program on this machine: where reading is open, such a call needs no token.

Whoever owns a name can let it lead to this machine, and a page under that name is of one origin with us then. A proxy
on this machine calls for others. A page of another site can make a browser on this machine call.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from functools import cache, lru_cache

from infosvc.access.csrf import Environ, is_own_origin
from infosvc.wire.errors import Unauthorized

LONGEST_HOST = 300  # characters of a Host header that are looked at; names have at most 253

_OF_PROXIES = frozenset({"HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP"})
_OF_PROXIES_TOO = "HTTP_X_FORWARDED_"


class LocalCalls:
    """Knows by which names this machine is called: localhost, its own names, and those of `names`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower().rstrip(".") for name in names)

    def find_objection(self, environ: Environ) -> Unauthorized | None:
        """Why a call must show a token even where reading is open; None when it need not."""
        host = str(environ.get("HTTP_HOST", ""))
        name = _name_in(host) if len(host) <= LONGEST_HOST else host
        if name and not self._is_ours(name):
            return Unauthorized(
                f"the call goes to {host[:200]!r}, a name that a stranger's page could use as well",
                "Authorization",
                remedy="call the service by its address, show a token, or give the name to `nodewise serve --name`",
            )
        header = next((key for key in environ if key in _OF_PROXIES or key.startswith(_OF_PROXIES_TOO)), None)
        if header is not None:
            return Unauthorized(
                f"the call comes through a proxy: it carries {_name_of(header)}", "Authorization", remedy="show a token"
            )
        site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
        if site == "cross-site" or (origin is not None and not is_own_origin(str(origin), environ)):
            return Unauthorized(
                "a page of another site made the browser call", "Authorization", remedy="open the dashboard itself"
            )
        return None

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or name.endswith(".localhost") or name in self._names:
            return True
        return name in _own_names()


@lru_cache(maxsize=256)
def _name_in(host: str) -> str:
    """The name in a Host header, empty for an address.

    >>> [_name_in(host) for host in ("127.0.0.1:8400", "[::1]:8400", "Wpad.:8400")]
    ['', '', 'wpad']
    """
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    name = name.lower().rstrip(".")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name
    return ""


@cache
def _own_names() -> frozenset[str]:
    """How this machine is called; asked once, because the answer may come from a name server."""
    return frozenset(name.lower().rstrip(".") for name in (socket.gethostname(), socket.getfqdn()))


def _name_of(header: str) -> str:
    """A header as people write it.

    >>> _name_of("HTTP_X_FORWARDED_FOR")
    'X-Forwarded-For'
    """
    return header.removeprefix("HTTP_").replace("_", "-").title()
