"""The token that a ticket of Kerberos is exchanged for. It says itself whose it is and until when, so none is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
from functools import cache

from infosvc.wire.errors import Unauthorized

MOST_SECONDS = 12 * 3600.0
BEGINNING = "nw_ticket_"
"""What tells such a token from all others, to people who find it, too."""
_FORM = re.compile(rf"{BEGINNING}([a-z0-9_.-]{{1,32}})_until_([0-9]{{1,11}})_([0-9a-f]{{64}})")


def text_of(user_name: str, until: int, secret: str) -> str:
    """The text of a user's token that counts until a Unix second; whoever has the service's `secret` can make it."""
    proof = hmac.digest(_key(secret), f"token of {user_name} until {until}".encode(), "sha256").hex()
    return f"{BEGINNING}{user_name}_until_{until}_{proof}"


def recognise(text: str, secret: str, now: float) -> tuple[str, int] | None:
    """Whose token a text is and until which Unix second, None for nobody's; Unauthorized once its time is over."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    user_name, until = found[1], int(found[2])
    if not hmac.compare_digest(text, text_of(user_name, until, secret)):
        return None
    if now >= until:
        raise Unauthorized(
            f"the token that {user_name} got by a ticket has expired",
            "Authorization",
            remedy="run `kinit` and `nodewise login` again",
        )
    return user_name, until


@cache
def _key(secret: str) -> bytes:
    """A key of which nobody who has a token can find a short secret by trying: each try takes a while."""
    return hashlib.scrypt(secret.encode(), salt=b"tokens by ticket", n=2**14, r=8, p=1)
