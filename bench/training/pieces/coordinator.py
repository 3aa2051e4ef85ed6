"""What it costs to lead 8, 64 and 256 members: the real leader and its JSON, called at a member's pace, no sockets.

Time is not waited for: the clock of the leader goes from one call to the next at once, and what the calls and ticks
need of the CPU is measured. HTTP itself is not: it comes on top.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.training.pieces.place import Found, Place
from jobs.application.calls import Request
from jobs.application.master import HEARTBEAT_SECONDS
from jobs.kinds.train.hearing import RunHearing
from learning.lead.calls import MEMBER, Answer, Doing, Done, Say, Share
from learning.lead.leader import Leader
from learning.lead.master import COMPUTING_SECONDS
from locality.training.generation_events import Event
from locality.training.generations import USUAL, MemberRules

COUNTS = (8, 64, 256)
ROUNDS, STEPS, QUICK_STEPS = 5, 40, 3
BATCH = 1024
NAME = "container_1700000000000_0001_01_{:06}"
"""As long as YARN's."""


@dataclass
class Costs:
    """CPU seconds of each call and each tick, and the longest seconds of a tick, of a run of so many seconds."""

    steps: int
    seconds: float
    calls: list[float] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    longest_tick: float = 0.0

    def to_milliseconds(self) -> dict[str, float]:
        """Of one step, of one call, of one second of the run, and of the longest tick."""
        cpu = sum(self.calls) + sum(self.ticks)
        found = {"step": cpu / self.steps, "call": sum(self.calls) / len(self.calls)}
        found |= {"second": cpu / self.seconds, "tick": self.longest_tick}
        return {name: 1e3 * value for name, value in found.items()}


def seconds_between_calls(members: int) -> float:
    """Between two calls of one of so many members that compute."""
    return COMPUTING_SECONDS * max(1.0, members / USUAL.crowd)


class Crowd:
    """Members of one generation, and the leader that they call."""

    def __init__(self, members: int) -> None:
        self._names = [NAME.format(number) for number in range(members)]
        self._now = self._next_tick = 0.0
        self._call = 0
        self._known: dict[str, tuple[int, int]] = {}
        """The attempt that has told each member a generation, and the number of that."""
        self._events: list[Event] = []
        rules = MemberRules(least=1, most=members)
        self._leader = Leader(1, rules, self._events.append, lambda: self._now)
        self._hearing = RunHearing(self._leader)

    def run(self, steps: int) -> Costs:
        """Gather, then make steps that last as long as a member waits between two calls."""
        costs = Costs(steps, steps * seconds_between_calls(len(self._names)))
        for name in self._names:
            self._say(name, Doing.WAITS, 0)
        self._tick(Costs(1, 1.0))
        for step in range(steps):
            self._make_step(step, costs)
        return costs

    def _make_step(self, step: int, costs: Costs) -> None:
        """One call of every member, spread over the pause between two, and the ticks meanwhile."""
        pause, began = seconds_between_calls(len(self._names)), self._now
        for place, name in enumerate(self._names, start=1):
            until = began + pause * place / len(self._names)
            while self._next_tick <= until:
                self._now = self._next_tick
                self._tick(costs)
            self._now = until
            costs.calls.append(self._say(name, Doing.COMPUTES, step))

    def _say(self, name: str, doing: Doing, step: int) -> float:
        """CPU seconds of the leader for one call."""
        self._call += 1
        share = Share(BATCH // len(self._names), BATCH, 0, gain=1.5)
        done = Done(step, 1000, step * share.samples, 0.1 * step, 0.1 * step, 0.5, 0.2, share)
        waits = doing is Doing.WAITS
        store = "10.0.0.1:40000:key" if waits else ""
        attempt, known = self._known.get(name, (0, 0))
        number, steps = (0, -1) if waits else (1, step)
        said = Say(name, doing, number, steps, store, "", 0, done, self._call, name, attempt, known)
        body = json.dumps(said.to_json()).encode()
        began = time.thread_time()
        content = json.dumps(self._hearing.hear(MEMBER, Request("", body, name))).encode()
        cpu = time.thread_time() - began
        self._note(name, Answer.from_json(json.loads(content)))
        return cpu

    def _note(self, name: str, answer: Answer) -> None:
        """A member keeps the generation that it was told."""
        if answer.generation is not None:
            self._known[name] = answer.age

    def _tick(self, costs: Costs) -> None:
        self._next_tick += HEARTBEAT_SECONDS
        seconds, cpu = _measure(self._leader.tick)
        costs.ticks.append(cpu)
        costs.longest_tick = max(costs.longest_tick, seconds)


def _measure(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and CPU seconds of this thread."""
    began, cpu = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - began, time.thread_time() - cpu


def coordinator(place: Place) -> Found:
    """Milliseconds of a step, a call and a second of the run, and of the longest tick."""
    found: Found = {}
    for number in range(place.rounds or ROUNDS):
        for members in COUNTS:
            costs = Crowd(members).run(QUICK_STEPS if place.quick else STEPS).to_milliseconds()
            place.say(f"coordinator, round {number + 1}: {members} members, {costs['step']:.2f} ms of CPU a step")
            for name, value in costs.items():
                found.setdefault(f"coordinator_{members}_{name}", []).append(value)
    return found


PIECES = {"coordinator": coordinator}
