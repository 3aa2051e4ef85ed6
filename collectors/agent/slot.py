"""One run slot: starts its command every interval seconds, ends it at its timeout, says how each run ended."""

from __future__ import annotations

import math
from typing import Protocol

from collectors.agent.child import Child
from collectors.agent.outcome import judge
from collectors.agent.trust import Refused
from infosvc.records import Outcome, Run, Slot

GRACE_SECONDS = 1.0  # between SIGTERM and SIGKILL
MIN_INTERVAL_SECONDS = 0.1


class Starter(Protocol):
    """What a slot needs of a launcher."""

    def start(self, slot: Slot) -> Child:
        """Start one run; Refused or OSError when it cannot be."""


class RunSlot:
    """The wanted slot `wanted`, first due at monotonic second `due`."""

    def __init__(self, wanted: Slot, starter: Starter, due: float) -> None:
        self.wanted = wanted
        self.due = due
        self._starter = starter
        self._interval = max(wanted.interval, MIN_INTERVAL_SECONDS)
        self._child: Child | None = None
        self._started = 0.0
        self._terminated: float | None = None

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._child is not None

    def step(self, now: float, may_start: bool = True) -> Run | None:
        """Do what is due at monotonic second `now`; return the run that ended, if one did."""
        if self._child is not None:
            return self._follow(self._child, now)
        if now >= self.due and may_start:
            return self._start(now)
        return None

    def end(self) -> None:
        """Kill the run, if there is one, and wait for it."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _start(self, now: float) -> Run | None:
        # Ticks that passed meanwhile are skipped, and the schedule keeps its phase: no burst, no drift.
        self.due += self._interval * (math.floor((now - self.due) / self._interval) + 1)
        try:
            self._child = self._starter.start(self.wanted)
        except Refused as refusal:
            return self._run(Outcome.REFUSED, 0.0, reason=str(refusal))
        except OSError as error:
            return self._run(Outcome.FAILED, 0.0, reason=f"{self.wanted.cmd!r} cannot be started: {error.strerror}")
        self._started = now
        self._terminated = None
        return None

    def _follow(self, child: Child, now: float) -> Run | None:
        duration = now - self._started
        if child.finished():
            self._child = None
            if self._terminated is None:
                outcome, value, reason = judge(child.status, child.stdout, child.stderr)
                return self._run(outcome, duration, value, reason)
        elif self._terminated is None and duration >= self.wanted.timeout:
            self._terminated = now
            child.terminate()
            return None
        elif self._terminated is not None and now - self._terminated >= GRACE_SECONDS:
            self.end()
        if self._child is not None:
            return None
        return self._run(Outcome.TIMEOUT, duration, reason=f"ended after its timeout of {self.wanted.timeout:g} s")

    def _run(self, outcome: Outcome, duration: float, value: str | None = None, reason: str | None = None) -> Run:
        return Run(self.wanted.data_name, outcome, round(max(duration, 0.0), 4), value, reason)
