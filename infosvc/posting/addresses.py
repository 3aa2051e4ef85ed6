"""Which web addresses messages may go to, and what others may see of one."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from infosvc.access.roles import is_loopback
from infosvc.wire.errors import Forbidden, InvalidInput
from infosvc.wire.task_spec import LONGEST_URL, WEB_ADDRESS


def check_address(url: str, field: str, may_choose: bool, hosts: Collection[str]) -> None:
    """InvalidInput for an address that cannot be told anything; Forbidden for one that the caller may not choose.

    Who may not choose freely may name those `hosts` alone. No message shows more than the host: the rest may be secret.
    """
    scheme, host = _parts(url, field)
    if scheme != "https" and not is_loopback(host):
        raise InvalidInput(
            f"{shown(url)} is not https, so that others could read and change what it is told",
            field,
            remedy="give an address that begins with https://",
        )
    if not may_choose and host not in hosts:
        allowed = f"an admin has allowed {', '.join(sorted(hosts))}" if hosts else "an admin has allowed none"
        raise Forbidden(
            f"the service may not send messages of users to {host}: {allowed}",
            field,
            remedy=f"ask an admin to start it with `nodewise serve --notify-host {host}`",
        )


def shown(url: str) -> str:
    """An address without what may be secret in it.

    >>> shown("https://hooks.example.org:8443/T0/secret?key=1")
    'https://hooks.example.org:8443/...'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/..."


def _parts(url: str, field: str) -> tuple[str, str]:
    """Scheme and host of an address, in small letters."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or len(url) > LONGEST_URL or not re.fullmatch(WEB_ADDRESS, url):
        raise InvalidInput(
            f"{field} is not a web address of at most {LONGEST_URL} plain characters",
            field,
            remedy="give one such as https://hooks.example.org/nodewise",
        )
    if "@" in parts.netloc or "#" in url:
        raise InvalidInput(
            f"{shown(url)} has a user or a fragment in it", field, remedy="leave both out; a path may be secret"
        )
    return parts.scheme, host
