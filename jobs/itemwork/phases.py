"""When a job waits for what, as its application master and its workers tell."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jobs.application.calls import Caller, Request, decode_body
from jobs.own_age import own_age
from jobs.reports.phases import LIBRARIES, MASTER, QUEUE
from jobs.reports.report import CONTAINER, NETWORK, Phase

SUBMITTED = "APP_SUBMIT_TIME_ENV"
"""Where YARN tells an application master when its job was submitted, in milliseconds of Unix time."""


class Begun(Caller):
    """The part of a heartbeat in which a worker tells once that it is ready: the seconds that its process has run, and
    of these how many its libraries and its network took.
    """

    age: float = 0.0
    libraries: float = 0.0
    network: float = 0.0

    @property
    def is_sensible(self) -> bool:
        """Whether it tells of times, and of such as can be."""
        times = self.age, self.libraries, self.network
        return self.age > 0 and all(0 <= one < math.inf for one in times) and self.libraries + self.network <= self.age


class Phases:
    """Notes the phases of a job. `clock` tells seconds since its work began. For several threads.

    Of a node it notes what its first container and its first worker that was ready waited for, and nothing where a
    pool's workers were there before. A job of which this is not the first attempt tells nothing: what the ones before
    have waited for is not known.
    """

    def __init__(self, clock: Callable[[], float], is_first: bool = True) -> None:
        self._clock = clock
        self._is_first = is_first
        self._asked: float | None = None
        self._found: list[Phase] = []
        self._started: dict[str, float] = {}
        self._begun: dict[str, float] = {}

    def note_asked(self) -> None:
        """The application master asks for containers now."""
        now, age = self._clock(), own_age()
        self._asked, launched = now, now - age
        if (submitted := os.environ.get(SUBMITTED, "")).isdecimal():
            waited = max(0.0, time.time() - age - int(submitted) / 1000)
            self._found.append(Phase(QUEUE, launched - waited, launched))
        self._found.append(Phase(MASTER, launched, now))

    def since_started(self, node: str) -> float:
        """Seconds since the first container of a node was started; 0 before."""
        return self._clock() - self._started[node] if node in self._started else 0.0

    def note_started(self, node: str) -> None:
        """A container of a node has been started."""
        if self._asked is not None and node not in self._started:
            self._started[node] = self._clock()
            self._found.append(Phase(CONTAINER, self._asked, self._started[node], node))

    def hear(self, request: Request) -> None:
        """Note of a heartbeat that a worker is ready, if it says so and its times can be."""
        told = decode_body(request.body, Begun)
        if told.node_name not in self._started or told.node_name in self._begun or not told.is_sensible:
            return
        self._begun[told.node_name] = told.libraries + told.network
        begin = self._clock() - told.age
        loading = begin + told.libraries
        self._found.append(Phase(LIBRARIES, begin, loading, told.node_name))
        self._found.append(Phase(NETWORK, loading, loading + told.network, told.node_name))

    def start_seconds(self) -> dict[str, float]:
        """How long the libraries and the network of each node's first worker took, in seconds by node."""
        return dict(self._begun)

    @contextmanager
    def lasting(self, name: str) -> Iterator[None]:
        """A phase of the application master's own."""
        begin = self._clock()
        yield
        self._found.append(Phase(name, begin, self._clock()))

    def list_all(self) -> tuple[Phase, ...]:
        """All of them until now."""
        if not self._is_first:
            return ()
        return tuple(sorted(self._found, key=lambda one: (one.begin, one.end)))
