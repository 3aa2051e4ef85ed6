"""The audit log: every change, log-in and refused call, each line sealed with the hash of the one before."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace

from infosvc.state.transaction import Transaction
from infosvc.wire.answers import AuditEntry

BEGINNING = "0" * 64  # what the first entry is chained to
WITH_KEY = "k"  # begins the hash of an entry that was sealed with a key, in place of its first hex digit

LONGEST = 4096  # characters of a call or a detail; what is longer ends in an ellipsis

# What removes old entries leaves an entry with this call and status, whose detail ends in the position of the last.
PRUNE_CALL = "DELETE /api/v1/audit"
PRUNE_STATUS = 200


class AuditLog:
    """Appends entries, sealed with the secret of the service's key if it has one."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret

    def record(
        self, transaction: Transaction, at: float, who: str, address: str, call: str, status: int, detail: str = ""
    ) -> None:
        """Append one entry to what a commit will store; `at` in Unix seconds."""
        last = transaction.configuration.audit.get("last")
        sequence, before = (last.sequence + 1, last.hash) if last else (1, BEGINNING)
        entry = AuditEntry(sequence, at, who[:255], address[:255], _shorten(call), status, _shorten(detail), "")
        sealed = replace(entry, hash=seal(entry, before, self._secret))
        transaction.rows("audit")["last"] = sealed
        transaction.audit.append(sealed)


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def seal(entry: AuditEntry, before: str, secret: bytes | None = None) -> str:
    """The hash of an entry that follows one with the hash `before`: SHA-256, or HMAC-SHA-256 with a secret."""
    fields = [before, entry.sequence, entry.at, entry.who, entry.address, entry.call, entry.status, entry.detail]
    text = json.dumps(fields).encode()
    if secret is None:
        return hashlib.sha256(text).hexdigest()
    return WITH_KEY + hmac.new(secret, text, hashlib.sha256).hexdigest()[1:]


def digest(content: bytes) -> str:
    """What the log holds of a body in its place, so that many values do not fill the database."""
    return json.dumps({"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})


def position(entry: AuditEntry) -> str:
    """Number and hash of an entry, as people note it: NUMBER:HASH."""
    return f"{entry.sequence}:{entry.hash}"
