"""What was read before and cannot change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Values by key, the `most` that were asked for last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}
        self._lock = threading.Lock()

    def get(self, key: K, read: Callable[[], V]) -> V:
        """The value, which is read unless it is here.

        >>> squares = Remembered[int, int](2)
        >>> [squares.get(number, lambda: number**2) for number in (2, 3, 2, 4)], list(squares._values)
        ([4, 9, 4, 16], [2, 4])
        """
        with self._lock:
            found = self._values.pop(key, None)
        if found is None:
            found = read()
        with self._lock:
            self._values[key] = found
            if len(self._values) > self._most:
                del self._values[next(iter(self._values))]
        return found
