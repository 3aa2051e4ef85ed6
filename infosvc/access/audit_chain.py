"""Follows the audit log from its beginning and says whether it is whole."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable

from infosvc.access.audit import BEGINNING, PRUNE_CALL, PRUNE_STATUS, WITH_KEY, seal
from infosvc.access.audit_key import AuditKey
from infosvc.wire.answers import AuditEntry

POSITION = re.compile(r"(\d{1,18}):(k?[0-9a-f]{63,64})")


class Chain:
    """`broken` says what is wrong at the first entry that does not fit.

    `noted` is the number and the hash of an entry as somebody wrote them down earlier. Without the key of the log,
    `unproven_from` is the first entry that only the key can prove. Entries up to `pruned_to` were removed by
    `audit prune`, which leaves an entry that says so.
    """

    def __init__(self, noted: tuple[int, str] | None = None, key: AuditKey | None = None) -> None:
        self.sequence = 0
        self.hash = BEGINNING
        self.broken: str | None = None
        self.unproven_from: int | None = None
        self.pruned_to = 0
        self._noted = noted
        self._key = key
        self._unanchored: AuditEntry | None = None  # the first of a log whose beginning is gone

    def follow(self, entries: Iterable[AuditEntry]) -> bool:
        """Take the next entries; False as soon as one does not fit."""
        for entry in entries:
            self.broken = self._find_fault(entry)
            if self.broken:
                return False
            self.sequence, self.hash = entry.sequence, entry.hash
        return True

    def end(self) -> bool:
        """Say that no entry follows; False when some are missing: the one that was noted, or the log's beginning."""
        if self.broken is None and self._unanchored:
            self.broken = f"entry 1 is missing: entry {self._unanchored.sequence} stands in its place"
        if self.broken is None and self._noted and self.sequence < self._noted[0]:
            self.broken = self._missing(self._noted[0])
        if self.broken is None and self._key and self.sequence < self._key.since - 1 and not _has_key(self.hash):
            self.broken = self._missing(self._key.since - 1)
        return self.broken is None

    def _find_fault(self, entry: AuditEntry) -> str | None:
        if not entry.hash:  # what the service remembers and does not find
            return self._missing(entry.sequence)
        if not self.sequence and entry.sequence > 1:
            self._unanchored, self.pruned_to = entry, entry.sequence - 1
            if self._key is None and _has_key(entry.hash):
                self.unproven_from = entry.sequence
        elif entry.sequence != self.sequence + 1:
            return f"entry {self.sequence + 1} is missing: entry {entry.sequence} stands in its place"
        elif not self._fits(entry, self.hash):
            return f"entry {entry.sequence} was changed, or the one before it was"
        elif self._is_forged_before(entry):
            return f"entry {self.sequence} is not the one after which the key of the log was made"
        if self._noted and self._noted[0] == entry.sequence and self._noted[1] != entry.hash:
            return f"entry {entry.sequence} is not the one that was noted: the log was written anew"
        return self._find_fault_at_beginning(entry)

    def _fits(self, entry: AuditEntry, before: str) -> bool:
        """Whether an entry is sealed as it must be; once there is a key, without it no more."""
        if not _has_key(entry.hash):
            too_late = _has_key(before) or (self._key is not None and entry.sequence >= self._key.since)
            return not too_late and hmac.compare_digest(entry.hash, seal(entry, before))
        if self._key is None:
            self.unproven_from = self.unproven_from or entry.sequence
            return True
        return hmac.compare_digest(entry.hash, seal(entry, before, self._key.secret))

    def _is_forged_before(self, entry: AuditEntry) -> bool:
        """Whether what stands before the first entry with a key is not what stood there when the key was made."""
        if self._key is None or not self.sequence or _has_key(self.hash) or not _has_key(entry.hash):
            return False
        return (self.sequence, self.hash) != (self._key.since - 1, self._key.before)

    def _find_fault_at_beginning(self, entry: AuditEntry) -> str | None:
        """Prove the first entry of a pruned log as soon as the entry comes that names the one before it."""
        if self._unanchored is None or entry.call.partition("?")[0] != PRUNE_CALL or entry.status != PRUNE_STATUS:
            return None
        position = POSITION.search(entry.detail)
        if not position or int(position[1]) != self.pruned_to:
            return None
        first, self._unanchored = self._unanchored, None
        if not self._fits(first, position[2]):
            return f"entry {first.sequence} was changed"
        if self._noted and self._noted[0] == self.pruned_to and self._noted[1] != position[2]:
            return f"entry {self.pruned_to} is not the one that was noted: the log was written anew"
        return None

    def _missing(self, newest: int) -> str:
        if newest <= self.sequence:
            return f"entry {newest} is not the one that the service wrote"
        return f"entries from {self.sequence + 1} to {newest} are missing: the log was cut short"


def _has_key(hash_: str) -> bool:
    return hash_.startswith(WITH_KEY)
