"""All run slots of a node: brings them to the wanted state and steps them, a few runs at a time."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import replace

from collectors.agent.slot import RunSlot, Starter
from infosvc.records import Run, Slot, Wanted

MAX_RUNNING = 4  # measuring must not become a load of its own
MAX_JITTER_SECONDS = 0.5
POLL_SECONDS = 0.05  # while a run is under way
IDLE_SECONDS = 1.0

log = logging.getLogger(__name__)


class Slots:
    """The slots of one agent; `want` may be called from any thread, everything else from the loop's."""

    def __init__(self, starter: Starter, on_run: Callable[[Run], None], jitter: Callable[[], float] = random.random):
        self._starter = starter
        self._on_run = on_run
        self._jitter = jitter
        self._slots: dict[str, RunSlot] = {}
        self._lock = threading.Lock()
        self._next: Wanted | None = None
        self.version = -1

    def want(self, wanted: Wanted) -> None:
        """Take a new wanted state; the next step brings the slots to it."""
        with self._lock:
            self._next = wanted
            self.version = wanted.version

    def step(self, now: float) -> float:
        """Do what is due at monotonic second `now`; return for how many seconds nothing will be."""
        self._adopt(now)
        running = sum(slot.running for slot in self._slots.values())
        for slot in sorted(self._slots.values(), key=lambda slot: slot.due):
            was_running = slot.running
            run = self._step_one(slot, now, running < MAX_RUNNING)
            running += slot.running - was_running
            if run is not None:
                self._on_run(run)
        if running:
            return POLL_SECONDS
        soonest = min((slot.due for slot in self._slots.values()), default=now + IDLE_SECONDS)
        return min(max(soonest - now, 0.0), IDLE_SECONDS)

    def end(self) -> None:
        """Kill every run and wait for it."""
        for slot in self._slots.values():
            slot.end()

    def _step_one(self, slot: RunSlot, now: float, may_start: bool) -> Run | None:
        try:
            return slot.step(now, may_start)
        except Exception:  # one slot's trouble must never stop the others
            log.exception("slot %s failed", slot.wanted.data_name)
            return None

    def _adopt(self, now: float) -> None:
        with self._lock:
            wanted, self._next = self._next, None
        if wanted is None:
            return
        asked = {slot.data_name: _essence(slot) for slot in wanted.slots if slot.running}
        for name in [name for name, slot in self._slots.items() if asked.get(name) != slot.wanted]:
            self._slots.pop(name).end()
        for name, essence in asked.items():
            if name not in self._slots:
                due = now + self._jitter() * min(MAX_JITTER_SECONDS, essence.interval / 4)
                self._slots[name] = RunSlot(essence, self._starter, due)
        log.info("wanted state %d: %d slots", wanted.version, len(self._slots))


def _essence(slot: Slot) -> Slot:
    """The slot without what was last reported about it, so that only a changed wish restarts it."""
    return replace(slot, outcome=None, duration=None, reason=None, age=None)
