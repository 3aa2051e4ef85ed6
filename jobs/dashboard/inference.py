"""Single pictures that callers have a pool look at: what is answered, and which pools are known already."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from infosvc.wire.errors import NotFound, NotReady
from infosvc.wire.fields import describe
from jobs.dashboard.places import Places
from jobs.kinds.pool.client import Ended, NotNow, Pool
from jobs.kinds.pool.wishes import Picture

MOST_AT_ONCE = 16
"""Half of all calls that may wait for Hadoop: others find the rest."""
MOST_OF_ONE = 8
"""Half of these for one user: other users find the rest."""
MOST_KEPT = 64
AWAY_SECONDS = 2.0
"""How long the master of a pool may be away: callers of the service ask again by themselves."""


@dataclass(frozen=True)
class RankedClass:
    """A class that a picture may be of."""

    class_id: int = field(metadata=describe("its number", example=281))
    class_name: str = field(metadata=describe("its label, or its number in words", example="tabby"))
    score: float | None = field(
        metadata=describe("probability, 0 to 1; null where the network gave no number", example=0.71)
    )


@dataclass(frozen=True)
class Inferred:
    """What the network of a pool says of a picture."""

    path: str = field(metadata=describe("as the caller named it", example="cat.jpg"))
    error: str | None = field(metadata=describe("why there is nothing else; null where there is", example=None))
    classes: tuple[RankedClass, ...] = field(metadata=describe("the five best, the best first; none of tensors"))
    outputs: Mapping[str, tuple[float | None, ...]] = field(
        metadata=describe("numbers of each output of a network that gives tensors", example={})
    )
    node_name: str = field(metadata=describe("whose worker looked at it", example="127.0.1.11"))
    engine: str = field(metadata=describe("engine and model; empty where a worker ended", example="onnx.alexnet"))
    together: int = field(metadata=describe("pictures that the worker had in one batch", example=1))
    milliseconds: float = field(
        metadata=describe("from its arrival at the pool to its row", unit="milliseconds", example=31.5)
    )
    work_milliseconds: float = field(
        metadata=describe("that the worker needed for the batch", unit="milliseconds", example=24.0)
    )


class Inference:
    """Safe for several threads. Pools that have answered are asked again without asking Hadoop where they are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[Hashable, Pool] = {}
        self._places = Places(MOST_AT_ONCE, MOST_OF_ONE, "pictures", "are looked at")

    def infer(self, user: str, key: Hashable, find: Callable[[], Pool], picture: Picture, content: bytes) -> Inferred:
        """What a pool says to a user of the service, which `find` finds if it is not known by its key.

        NotFound when there is no such pool, NotReady when it cannot answer now, JobError for what can be no picture.
        TooManyRequests to a user who asks about many pictures at once.
        """
        try:
            with self._places.take(user):
                try:
                    row = self._find(key, find).infer(picture, content, AWAY_SECONDS)
                except Ended:  # another one may have its name by now
                    self._forget(key)
                    row = self._find(key, find).infer(picture, content, AWAY_SECONDS)
        except NotNow as error:
            raise NotReady(error.message, remedy=error.remedy) from error
        return make_answer(row)

    def _find(self, key: Hashable, find: Callable[[], Pool]) -> Pool:
        with self._lock:
            if known := self._pools.get(key):
                return known
        try:
            found = find()
        except NotNow as error:
            raise NotFound(error.message, remedy=error.remedy) from error
        with self._lock:
            self._pools[key] = found
            for oldest in list(self._pools)[:-MOST_KEPT]:
                del self._pools[oldest]
        return found

    def _forget(self, key: Hashable) -> None:
        with self._lock:
            self._pools.pop(key, None)


def make_answer(row: Mapping[str, Any]) -> Inferred:
    """A row as a pool's master tells it."""
    best = row.get("top5") or ()
    classes = tuple(RankedClass(one["class_id"], one["class_name"], _number(one["score"])) for one in best)
    lists = {name: one for name, one in row.items() if isinstance(one, list) and name != "top5"}
    return Inferred(
        path=row["path"],
        error=row["error"],
        classes=classes,
        outputs={name: tuple(map(_number, found)) for name, found in lists.items()},
        node_name=row["node_name"],
        engine=row.get("engine", ""),
        together=row.get("together", 1),
        milliseconds=row["milliseconds"],
        work_milliseconds=row.get("work_milliseconds", 0.0),
    )


def _number(said: float) -> float | None:
    """A number as JSON has it; None for what it has not."""
    return said if math.isfinite(said) else None
