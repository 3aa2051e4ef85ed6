"""How often somebody may call: a bucket for each key, which fills evenly and holds two seconds' worth."""

from __future__ import annotations

import math

from infosvc.wire.errors import TooManyRequests

BURST_SECONDS = 2.0
MOST_KEYS = 10_000


class TooFast(TooManyRequests):
    """The caller is over its rate; `retry_after` whole seconds until it may call again."""

    def __init__(self, message: str, wait: float) -> None:
        self.retry_after = max(1, math.ceil(wait))
        super().__init__(message, remedy=f"call again in {self.retry_after} s")


class RateLimit:
    """One bucket per key, `per_second` calls each; 0 means no limit. Times are monotonic seconds.

    A bucket is one number, the moment at which it will be full again. Threads that meet on a key may lose a count,
    which is cheaper than a lock on every call.
    """

    def __init__(self, per_second: float, burst: float = BURST_SECONDS) -> None:
        self._cost = 1 / per_second if per_second > 0 else 0.0
        # Less than one call would let nobody in at all; a sum of floats may come out a little larger than it is.
        self._burst = max(burst, self._cost)
        self._most = self._burst + 1e-9
        self._full_at: dict[str, float] = {}

    def take(self, key: str, now: float, number: int = 1) -> float:
        """Count so many calls of a key; 0 when it may go on, else the seconds to wait, and then nothing is counted."""
        buckets = self._full_at
        full_at = buckets.get(key, now)
        if full_at < now:
            full_at = now
        full_at += self._cost * number
        if full_at - now > self._most:
            return full_at - now - self._burst
        buckets[key] = full_at
        if len(buckets) > MOST_KEYS:
            self._forget(now)
        return 0.0

    def wait(self, key: str, now: float) -> float:
        """The seconds until the next call of a key may be counted, 0 for none."""
        return max(0.0, self._full_at.get(key, now) + self._cost - now - self._most)

    def _forget(self, now: float) -> None:
        """Leave out full buckets; when too many callers are at it at once, all begin anew."""
        kept = {key: full_at for key, full_at in list(self._full_at.items()) if full_at > now}
        self._full_at = kept if len(kept) < MOST_KEYS // 2 else {}
