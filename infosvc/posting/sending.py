"""One message to one web address: bounded in time, over https with a certificate that is checked, and no redirects."""

from __future__ import annotations

import hashlib
import hmac
import ssl
import time
from contextlib import closing
from http.client import HTTPException
from urllib.parse import urlsplit

from infosvc.wire.bounded_answer import answer_by, new_connection

CONNECT_SECONDS = 3.0
SECONDS = 8.0  # for all of it
_REDIRECTS = range(300, 400)


class NotDelivered(Exception):
    """A message did not arrive, or its receiver did not say that it did."""


def send(url: str, event_id: str, body: str, secret: str = "") -> None:
    """Post a message; NotDelivered says why it did not arrive.

    With a secret, X-Nodewise-Signature tells the HMAC of the body. Nothing is read of the answer but its status.
    """
    content = body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "nodewise", "Idempotency-Key": event_id}
    if secret:
        headers["X-Nodewise-Signature"] = signature(content, secret)
    try:
        status = _post(url, content, headers)
    except (OSError, HTTPException, ValueError) as error:
        raise NotDelivered(f"no answer ({error or type(error).__name__})") from error
    if status in _REDIRECTS:
        raise NotDelivered(f"it answered {status}, a redirect, which is not followed: give the address it leads to")
    if not 200 <= status < 300:
        raise NotDelivered(f"it answered {status}")


def signature(content: bytes, secret: str) -> str:
    """What the receiver compares, which has the secret too.

    >>> signature(b"{}", "key")[:23]
    'sha256=a777724d943eb48d'
    """
    return "sha256=" + hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


def _post(url: str, content: bytes, headers: dict[str, str]) -> int:
    parts, deadline = urlsplit(url), time.monotonic() + SECONDS
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    with closing(new_connection(str(parts.hostname), parts.port, CONNECT_SECONDS, tls)) as connection:
        connection.request("POST", f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}", content, headers)
        return answer_by(connection, deadline).status
