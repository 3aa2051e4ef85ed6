"""All run slots of a node: brings them to the wanted state and steps them, a few runs at a time."""

from __future__ import annotations

import logging
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from collectors.agent.inputs import Inputs
from collectors.agent.slot import MIN_INTERVAL_SECONDS, Ended, RunSlot, Starter
from infosvc.wire.records import Outcome, Run, Scope, Slot, Wanted

MAX_RUNNING = 4  # measuring must not become a load of its own
MAX_FAILING = 1  # of these, so that what hangs at every turn never takes all places
END_SECONDS = 1.0  # for killed runs to be gone when the agent ends
FIRST_SECONDS = 0.5  # the longest wait for a slot's first run
IDLE_SECONDS = 10.0

log = logging.getLogger(__name__)


class Slots:
    """The slots of one agent, which fire at the share `phase` of their intervals.

    `wake` is called when there is something new to step for. `want`, `delivered` and `counted` may be called from any
    thread, everything else from the loop's.
    """

    def __init__(
        self,
        starter: Starter,
        on_end: Callable[[Ended], None],
        phase: float = 0.0,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._starter = starter
        self._on_end = on_end
        self._phase = phase
        self._wake = wake
        self._slots: dict[str, RunSlot] = {}
        self._leaving: list[RunSlot] = []  # no longer wanted, and something is left of a run
        self._under_way: list[RunSlot] = []
        self._resting: dict[str, int] = {}  # slots in quarantine -> the epoch in which they came there
        self._known: set[str] = set()
        self._names: frozenset[str] | None = None
        self._inputs = Inputs()
        self._lock = threading.Lock()
        self._next: Wanted | None = None
        self._changed: dict[Scope, set[str]] = {scope: set() for scope in Scope}
        self.version = -1

    def want(self, wanted: Wanted) -> None:
        """Take a new wanted state; the next step brings the slots to it."""
        with self._lock:
            self._next = wanted
            self.version = wanted.version
        self._wake()

    def note_delivered(self, runs: Sequence[Run]) -> None:
        """The service has these runs now, so processors of this node that read what they changed may run."""
        with self._lock:
            self._note(Scope.NODE, self._inputs.note_delivered(runs))

    def note_counts(self, counts: Mapping[str, int]) -> None:
        """How often each input has changed that no run of this node brings: elsewhere, or by a program."""
        with self._lock:
            changed = self._inputs.note_counts(counts)
            for scope in Scope:
                self._note(scope, changed)

    def step(self, now: float) -> float:
        """Do what is due at monotonic second `now`; return for how many seconds nothing will be."""
        self._adopt(now)
        self._pass_on_changes()
        self._leaving = [slot for slot in self._leaving if not slot.is_gone()]
        self._under_way = [slot for slot in self._slots.values() if slot.running]
        for slot in sorted(self._slots.values(), key=lambda slot: slot.due):
            ended = self._step_one(slot, now, now >= slot.due and self._has_place(slot))
            if slot.running != (slot in self._under_way):
                (self._under_way.append if slot.running else self._under_way.remove)(slot)
            if ended is not None:
                self._end_one(ended, slot)
        return self._wait(now)

    def quiet_seconds(self, now: float) -> float:
        """For how long no run will be under way; 0 while one is."""
        if any(slot.running for slot in self._slots.values()):
            return 0.0
        return max(min(self._dues(), default=now + IDLE_SECONDS) - now, 0.0)

    @property
    def names(self) -> frozenset[str] | None:
        """The slots of the wanted state, stopped ones too; None before there is one."""
        return self._names

    def busy(self) -> set[str]:
        """The names of the slots of which a run is left."""
        return {slot.wanted.data_name for slot in (*self._slots.values(), *self._leaving) if slot.busy}

    @property
    def descriptors(self) -> list[int]:
        """What the runs under way are waited for with."""
        return [number for slot in (*self._slots.values(), *self._leaving) for number in slot.descriptors]

    def end(self) -> None:
        """Kill every run and wait until it is gone, or as long as that makes sense."""
        for name in list(self._slots):
            self._remove(name)
        deadline = time.monotonic() + END_SECONDS
        while left := [slot for slot in self._leaving if not slot.is_gone()]:
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                log.warning("%s does not die", ", ".join(slot.wanted.data_name for slot in left))
                return
            select.select([number for slot in left for number in slot.descriptors], [], [], seconds)

    def _note(self, scope: Scope, changed: set[str]) -> None:
        if changed:
            self._changed[scope] |= changed
            self._wake()

    def _has_place(self, slot: RunSlot) -> bool:
        """Whether it may start now: one of few, after what a former slot of its name has left behind."""
        if self._leaving and slot.wanted.data_name in [left.wanted.data_name for left in self._leaving]:
            return False
        if slot.failing and sum(each.failing for each in self._under_way) >= MAX_FAILING:
            return False
        return len(self._under_way) < MAX_RUNNING

    def _remove(self, name: str) -> None:
        slot = self._slots.pop(name)
        slot.end()
        self._leaving.append(slot)

    def _dues(self) -> list[float]:
        """When the slots are due that could start now."""
        return [slot.due for slot in self._slots.values() if not slot.busy and self._has_place(slot)]

    def _wait(self, now: float) -> float:
        moments = [*(slot.deadline for slot in self._under_way), *self._dues()]
        return min(max(min(moments, default=now + IDLE_SECONDS) - now, 0.0), IDLE_SECONDS)

    def _step_one(self, slot: RunSlot, now: float, may_start: bool) -> Ended | None:
        try:
            return slot.step(now, may_start)
        except Exception:  # one slot's trouble must never stop the others
            log.exception("slot %s failed", slot.wanted.data_name)
            return None

    def _end_one(self, ended: Ended, slot: RunSlot) -> None:
        if slot.quarantined:
            self._resting[slot.wanted.data_name] = slot.wanted.epoch
            log.warning("%s is in quarantine: %s", slot.wanted.data_name, ended.run.reason)
        self._on_end(ended)

    def _pass_on_changes(self) -> None:
        with self._lock:
            changed, self._changed = self._changed, {scope: set() for scope in Scope}
        for slot in self._slots.values():
            if not changed[slot.wanted.scope].isdisjoint(slot.wanted.inputs):
                slot.trigger()

    def _adopt(self, now: float) -> None:
        with self._lock:
            wanted, self._next = self._next, None
        if wanted is None:
            return
        asked = {slot.data_name: slot for slot in wanted.slots if slot.running}
        kept = {name for name, slot in asked.items() if name in self._slots and self._slots[name].wanted == _wish(slot)}
        for name in self._slots.keys() - kept:
            self._remove(name)
        for name in asked.keys() - kept:
            self._slots[name] = self._make_slot(asked[name], now)
        self._known |= asked.keys()
        self._names = frozenset(slot.data_name for slot in wanted.slots)
        with self._lock:
            self._inputs.follow(name for slot in asked.values() for name in slot.inputs)
        log.info("wanted state %d: %d slots", wanted.version, len(self._slots))

    def _make_slot(self, slot: Slot, now: float) -> RunSlot:
        """A slot that rests stays at rest until its epoch grows, even if another agent than this one sent it there."""
        name, interval = slot.data_name, max(slot.interval, MIN_INTERVAL_SECONDS)
        if slot.outcome is Outcome.QUARANTINED and name not in self._known:
            self._resting[name] = slot.epoch
        rests = self._resting.get(name) == slot.epoch
        first = now + self._phase * min(FIRST_SECONDS, interval / 4)
        return RunSlot(_wish(slot), self._starter, first, self._phase * interval, rests)


def _wish(slot: Slot) -> Slot:
    """The slot without what was last reported about it, so that only a changed wish restarts it."""
    return replace(slot, skipped=0, outcome=None, duration=None, reason=None, age=None)
