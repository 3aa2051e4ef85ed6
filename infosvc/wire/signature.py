"""How the service shows an agent that a request is its own: a signature, made with a key that never travels.

    Authorization: Nodewise-HMAC-SHA256 1722470400.123456 5f0c0e9a11d2c3b4 9d3e...   (Unix seconds, nonce, HMAC)

The key is the hash of the agent's token, which only the two have. A signature counts for one request, within
WINDOW_SECONDS of the agent's clock, and once. Standard library only.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from infosvc.wire.errors import Unauthorized

SCHEME = "Nodewise-HMAC-SHA256"
WINDOW_SECONDS = 30.0

_HEADER = re.compile(rf"{SCHEME} (\d{{1,12}}\.\d{{6}}) ([0-9a-f]{{16}}) ([0-9a-f]{{64}})")


@dataclass(frozen=True)
class Signature:
    """What the header says: when it was made, a number used once, and the proof."""

    moment: str
    nonce: str
    proof: str

    @classmethod
    def read(cls, header: str) -> Signature:
        """The signature in an Authorization header; Unauthorized when there is none."""
        match = _HEADER.fullmatch(header)
        if match is None:
            raise Unauthorized(f"this call needs a signature of the service: Authorization: {SCHEME} ...")
        return cls(*match.groups())

    def is_by(self, key: str, method: str, path: str, body: bytes) -> bool:
        """Whether the holder of `key` made it for this request."""
        return hmac.compare_digest(self.proof, _prove(key, self.moment, self.nonce, method, path, body))


def sign(key: str, method: str, path: str, body: bytes = b"", now: float | None = None) -> str:
    """The Authorization header of a request that is sent at Unix second `now`."""
    moment, nonce = f"{time.time() if now is None else now:.6f}", secrets.token_hex(8)
    return f"{SCHEME} {moment} {nonce} {_prove(key, moment, nonce, method, path, body)}"


class Signatures:
    """Tells which signatures an agent believes: those of `key` that are new. Any thread may ask.

    What was signed before this was made is too old, so that a restart believes nothing twice.
    """

    def __init__(
        self,
        key: str,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key = key
        self._clock = clock
        self._monotonic = monotonic
        self._begun = monotonic()
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()

    def check_time(self, signature: Signature) -> None:
        """Unauthorized when it was not made just now, by this machine's clock."""
        age = self._clock() - float(signature.moment)
        oldest = min(WINDOW_SECONDS, self._monotonic() - self._begun)
        if not -WINDOW_SECONDS <= age <= oldest:
            raise Unauthorized(f"the signature is {age:.1f} s old by this machine's clock", remedy="set both clocks")

    def take(self, signature: Signature, method: str, path: str, body: bytes) -> None:
        """Believe a signature, for the only time; Unauthorized when it is not of this request or was believed."""
        if not signature.is_by(self._key, method, path, body):
            raise Unauthorized("the signature is not of this request, or made with another token's hash")
        now = self._monotonic()
        with self._lock:
            self._seen = {nonce: at for nonce, at in self._seen.items() if now - at <= 2 * WINDOW_SECONDS}
            if signature.nonce in self._seen:
                raise Unauthorized("this request came before", remedy="sign each one anew")
            self._seen[signature.nonce] = now


def _prove(key: str, moment: str, nonce: str, method: str, path: str, body: bytes) -> str:
    content = "\n".join((moment, nonce, method, path, hashlib.sha256(body).hexdigest()))
    return hmac.new(key.encode(), content.encode(), hashlib.sha256).hexdigest()
