"""Who calls behind a proxy: its address as the proxy tells it, if that proxy is one that the operator trusts."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from infosvc.access.csrf import Environ

LONGEST = 1_024  # characters at the end of X-Forwarded-For that are looked at
PEER = "infosvc.peer"  # who made the connection, where REMOTE_ADDR is the one for whom a proxy calls


def peer_of(environ: Environ) -> str:
    """Return the address that the connection of a call comes from, which is the proxy's for what a proxy passes on."""
    return str(environ.get(PEER) or environ.get("REMOTE_ADDR", ""))


class Proxies:
    """Puts the caller's own address in the place of a trusted proxy's, for rate limits and the audit log."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted = frozenset(trusted)

    def correct(self, environ: Environ) -> None:
        """Set REMOTE_ADDR of a call that a trusted proxy passes on; any other call stays as it is."""
        if self._trusted and environ.get("REMOTE_ADDR") in self._trusted:
            environ[PEER] = environ["REMOTE_ADDR"]
            environ["REMOTE_ADDR"] = self._caller(environ["REMOTE_ADDR"], str(environ.get("HTTP_X_FORWARDED_FOR", "")))

    def _caller(self, proxy: str, forwarded: str) -> str:
        """The last address that no trusted proxy has; what stands before it may be the caller's invention.

        >>> Proxies(["10.0.0.1", "10.0.0.2"])._caller("10.0.0.1", "1.1.1.1, 9.9.9.9, 10.0.0.2")
        '9.9.9.9'
        """
        for one in reversed(forwarded[-LONGEST:].split(",")):
            try:
                address = str(ipaddress.ip_address(one.strip()))
            except ValueError:
                return proxy
            if address not in self._trusted:
                return address
        return proxy
