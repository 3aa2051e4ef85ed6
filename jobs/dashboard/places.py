"""Places for calls that take long: so many in all, and so many for one user, whose calls keep nobody else out."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from infosvc.wire.errors import NotReady, TooManyRequests


class Places:
    """Safe for several threads. `things` and `taken` say what takes a place, as "pictures" that "are looked at"."""

    def __init__(self, most: int, most_of_one: int, things: str, taken: str) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._things = things
        self._said = f"{taken} already"
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    @contextmanager
    def take(self, user: str) -> Iterator[None]:
        """A place for one more call of a user, which others may have afterwards.

        TooManyRequests when the user has as many as one may have, NotReady when none is left.
        """
        with self._lock:
            if self._taken[user] >= self._most_of_one:
                raise TooManyRequests(
                    f"{self._most_of_one} {self._things} of {user} {self._said}, and one user gets no more at once",
                    remedy="try again when one has its answer",
                )
            if self._taken.total() >= self._most:
                raise NotReady(f"{self._most} {self._things} {self._said}", remedy="try again in a moment")
            self._taken[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[user] -= 1
                self._taken = +self._taken  # without those who have none
