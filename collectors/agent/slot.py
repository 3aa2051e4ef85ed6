"""One run slot: starts its command when it is due, ends it at its timeout, says how each run ended."""

from __future__ import annotations

import math
import subprocess
from dataclasses import dataclass
from typing import Protocol

from collectors.agent.run.child import Child
from collectors.agent.run.outcome import Verdict, classify_run
from collectors.agent.run.trust import Refused
from collectors.agent.schedule import QUARANTINE_FAILURES, back_off, least_gap, missed_ticks, next_tick
from infosvc.wire.records import Outcome, Run, Slot

GRACE_SECONDS = 1.0  # between SIGTERM and SIGKILL
REAP_SECONDS = 1.0  # what SIGKILL has not ended by then hangs in the kernel
MIN_INTERVAL_SECONDS = 0.1
_SHOWN_REASON = 300  # characters of the last failure in the reason for a quarantine


class Starter(Protocol):
    """What a slot needs of a launcher."""

    def start(self, slot: Slot) -> Child:
        """Start one run; Refused, OSError or SubprocessError when it cannot be."""


@dataclass(frozen=True)
class Ended:
    """A run that ended: what the service is told, and for the slot's log how the run itself ended."""

    run: Run
    outcome: Outcome
    stderr: bytes = b""


class RunSlot:
    """The wanted slot `wanted`, first due at monotonic second `first`, then at every tick a whole number of intervals
    from `phase`. A slot with inputs is due an interval after its last run, or soon after `trigger`.

    After some failures in a row its interval grows; after ten it starts nothing more: it is in quarantine. Nor does it
    start anything while a run of it is left that even SIGKILL has not ended.
    """

    def __init__(
        self, wanted: Slot, starter: Starter, first: float, phase: float | None = None, quarantined: bool = False
    ) -> None:
        self.wanted = wanted
        self.quarantined = quarantined
        self._starter = starter
        self._interval = max(wanted.interval, MIN_INTERVAL_SECONDS)
        self._phase = first if phase is None else phase
        self._due = first
        self._triggered = False
        self._child: Child | None = None
        self._started = -math.inf
        self._terminated: float | None = None
        self._killed: float | None = None
        self._stuck = False
        self._skipped = 0
        self._failures = 0
        self._refusals = 0

    @property
    def running(self) -> bool:
        """Whether a run is under way; one that SIGKILL does not end does not count: its end was reported already."""
        return self._child is not None and not self._stuck

    @property
    def busy(self) -> bool:
        """Whether anything is left of a run, so that no other can start."""
        return self._child is not None

    @property
    def failing(self) -> bool:
        """Whether its last run was bad."""
        return self._failures + self._refusals > 0

    @property
    def descriptors(self) -> list[int]:
        """What the run under way is waited for with."""
        return self._child.descriptors if self._child else []

    @property
    def due(self) -> float:
        """When the next run may start."""
        if self.quarantined:
            return math.inf
        if self._triggered and back_off(self._failures + self._refusals) == 1:
            return min(self._due, self._started + least_gap(self._interval))
        return self._due

    @property
    def deadline(self) -> float:
        """When a run under way is to be ended, if it does not end by itself."""
        if self._stuck:
            return math.inf
        if self._killed is not None:
            return self._killed + REAP_SECONDS
        if self._terminated is not None:
            return self._terminated + GRACE_SECONDS
        return self._started + self.wanted.timeout

    def trigger(self) -> None:
        """An input has changed: run soon, or once more after the run that is under way."""
        self._triggered = True

    def step(self, now: float, may_start: bool = True) -> Ended | None:
        """Do what is due at monotonic second `now`; return the run that ended, if one did."""
        if self._child is not None:
            return self._follow(self._child, now)
        if now >= self.due and may_start:
            return self._start(now)
        return None

    def end(self) -> None:
        """Kill the run, if there is one; `gone` tells when nothing is left of it."""
        if self._child is not None:
            self._child.kill()

    def is_gone(self) -> bool:
        """Whether nothing is left of a run that `end` has killed; to be asked until it is."""
        if self._child is not None and self._child.has_finished():
            self._child = None
        return self._child is None

    def _start(self, now: float) -> Ended | None:
        self._plan(now)
        self._started = now
        self._terminated = self._killed = None
        self._triggered = False
        try:
            self._child = self._starter.start(self.wanted)
        except Refused as refusal:
            return self._make_ended(0.0, Verdict(Outcome.REFUSED, None, str(refusal)))
        except (OSError, subprocess.SubprocessError) as error:
            reason = f"{self.wanted.cmd!r} cannot be started: {getattr(error, 'strerror', None) or error}"
            return self._make_ended(0.0, Verdict(Outcome.FAILED, None, reason))
        return None

    def _plan(self, now: float) -> None:
        """Ticks that passed meanwhile are skipped and the schedule keeps its phase: no burst, no drift."""
        self._skipped = missed_ticks(now, self._interval, self._due)
        if self.wanted.inputs:
            self._due = now + self._interval
            return
        # The first run comes soon, whatever the phase is; a tick that follows at once would measure nothing.
        earliest = now + self._interval / 2 if self._started == -math.inf and self._due != self._phase else now
        self._due = next_tick(earliest, self._interval, self._phase)

    def _follow(self, child: Child, now: float) -> Ended | None:
        if child.has_finished():
            self._child = None
            return self._finish(child, now)
        return self._press(child, now) if now >= self.deadline else None

    def _press(self, child: Child, now: float) -> Ended | None:
        """The next step against a run that is too long."""
        if self._terminated is None:
            self._terminated = now
            child.terminate()
        elif self._killed is None:
            self._killed = now
            child.kill()
        else:
            self._stuck = True
            reason = f"{self._too_long()}, but cannot be killed: it is blocked in the kernel, perhaps by a disk"
            return self._make_ended(now - self._started, Verdict(Outcome.TIMEOUT, None, reason))
        return None

    def _finish(self, child: Child, now: float) -> Ended | None:
        if self._stuck:  # nothing new: it was reported when it did not die
            self._stuck = False
            return None
        if self._terminated is None:
            wanted = self.wanted
            verdict = classify_run(child.status, child.stdout, child.stderr, wanted.data_name, wanted.emits)
        else:
            verdict = Verdict(Outcome.TIMEOUT, None, self._too_long())
        return self._make_ended(now - self._started, verdict, child)

    def _too_long(self) -> str:
        return f"ended after its timeout of {self.wanted.timeout:g} s"

    def _make_ended(self, duration: float, verdict: Verdict, child: Child | None = None) -> Ended:
        self._count(verdict.outcome)
        run = Run(
            self.wanted.data_name,
            Outcome.QUARANTINED if self.quarantined else verdict.outcome,
            round(max(duration, 0.0), 4),
            verdict.value,
            self._resting(verdict.reason) if self.quarantined else verdict.reason,
            exit_status=child.status if child else None,
            skipped=self._skipped,
            values=verdict.values,
        )
        return Ended(run, verdict.outcome, child.stderr if child else b"")

    def _count(self, outcome: Outcome) -> None:
        if not outcome.is_bad:
            self._failures = self._refusals = 0
            return
        # What is refused has not run, and a push mends it without anybody's word: no reason for a quarantine.
        self._failures += outcome is not Outcome.REFUSED
        self._refusals += outcome is Outcome.REFUSED
        self._due += (back_off(self._failures + self._refusals) - 1) * self._interval
        self.quarantined = self._failures >= QUARANTINE_FAILURES

    def _resting(self, reason: str | None) -> str:
        return (
            f"failed {self._failures} times in a row, last with: {(reason or '')[-_SHOWN_REASON:]}; mend it, "
            f"then let it run again with `nodewise slot lift NODE {self.wanted.data_name}`"
        )
