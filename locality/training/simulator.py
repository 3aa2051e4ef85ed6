"""A run on played nodes with the models, shares and generations of a real one; the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

import numpy as np

from locality.training.first_guess import first_models
from locality.training.generation_events import Began, Event, Generation
from locality.training.generations import USUAL, Generations, MemberRules, Phase
from locality.training.joining import Work, find_wanted
from locality.training.local_first import Ints, assign_in_order
from locality.training.played_nodes import PlayedRun
from locality.training.regrouping import NO_STATE
from locality.training.share_changes import Shares, best_shares, reconsider
from locality.training.shares import shrink
from locality.types import PlanError

BEAT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 3600.0


class Sharing(Enum):
    """How a global batch is shared."""

    EQUAL = "all members compute the same"
    FIXED = "by the speeds that were thought at first"
    ADAPTIVE = "by the steps that were made"


@dataclass(frozen=True)
class StepDone:
    """A step that was applied: when it began, how long it took and could have taken at least, and who computed what."""

    step: int
    begun: float
    seconds: float
    bound_seconds: float
    assigned: Mapping[str, Ints]

    def shares(self) -> dict[str, int]:
        """Samples by member."""
        return {member: len(samples) for member, samples in self.assigned.items()}


@dataclass
class Outcome:
    """What happened; `steps` made the state that rank 0 has at the end, `states` are the same of each member."""

    seconds: float = 0.0
    steps: list[StepDone] = field(default_factory=list)
    states: dict[str, list[StepDone]] = field(default_factory=dict)
    changes: list[Shares] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    repeated: int = 0

    @property
    def generations(self) -> list[Generation]:
        """Those that there were."""
        return [event for event in self.events if isinstance(event, Generation)]

    def count_uses(self, epoch: int, run: PlayedRun) -> Ints:
        """How often each sample was used in an epoch."""
        steps = [step for step in self.steps if run.order.locate(step.step)[0] == epoch]
        used = [samples for step in steps for samples in step.assigned.values()]
        return np.bincount(np.concatenate([*used, np.zeros(0, np.int64)]), minlength=run.order.samples)


def simulate(run: PlayedRun, sharing: Sharing, rules: MemberRules = USUAL) -> Outcome:
    """Play a run to its end. PlanError if there are too few members for an hour."""
    return _Simulation(run, sharing, rules).play()


class _Simulation:
    def __init__(self, run: PlayedRun, sharing: Sharing, rules: MemberRules) -> None:
        self._run = run
        self._sharing = sharing
        self._rules = rules
        self._draw = Random(run.seed)  # noqa: S311 nothing secret
        self._now = 0.0
        self._generations = Generations(rules)
        self._models = first_models(run.nodes, run.thought, {})
        self._states: dict[str, list[StepDone]] = {}
        self._shares = Shares(0, {})
        self._outcome = Outcome()

    def play(self) -> Outcome:
        """Until every step is applied."""
        self._apply(Began(1))
        while True:
            self._regroup()
            members = self._generations.members
            while self._is_running() and len(self._states[members[0]]) < self._run.steps:
                self._make_step(members)
                self._follow()
            if self._is_running():
                self._outcome.seconds, self._outcome.steps = self._now, self._states[members[0]]
                self._outcome.states = {member: self._states[member] for member in members}
                return self._outcome

    def _regroup(self) -> None:
        """Beat by beat, until a generation runs."""
        begun = self._now
        while not self._is_running():
            if self._now - begun > LONGEST_WAIT_SECONDS:
                raise PlanError("there are too few members to go on", remedy="play more nodes")
            self._stop_members()
            self._follow()
            if not self._is_running():
                self._now += BEAT_SECONDS

    def _stop_members(self) -> None:
        current = self._generations.current
        for member in self._generations.members if current else ():
            if current and self._run.nodes[member].is_alive(self._now):
                steps = len(self._states[member]) if member in self._states else NO_STATE
                self._generations.stop(member, current.number, steps, f"{member}:1", self._now)

    def _follow(self) -> None:
        """Let processes tell that they live, and do what is due."""
        for name, node in self._run.nodes.items():
            if node.is_alive(self._now):
                self._generations.join(name, f"{name}:1", self._now)
        while event := self._generations.due(self._now, self._find_wanted()):
            self._apply(event)

    def _find_wanted(self) -> frozenset[str] | None:
        members, waiting = self._generations.members, self._generations.waiting
        if not (self._is_running() and waiting):
            return None
        self._guess_again(waiting)
        order = self._run.order
        work = Work(
            order.batch,
            {name: model.seconds for name, model in self._models.items()},
            self._most(),
            lambda _: self._run.comm_seconds,
            self._run.steps - len(self._states[members[0]]),
            self._run.regroup_seconds,
        )
        return find_wanted(members, waiting, work, self._rules.least, self._rules.most)

    def _guess_again(self, waiting: tuple[str, ...]) -> None:
        """Judge those that made no step yet by those that have."""
        known = {name: 1 / model.line.sample_seconds for name, model in self._models.items() if model.readings}
        new = [name for name in waiting if name not in known]
        self._models |= first_models(new, known, self._run.thought) if known else {}

    def _apply(self, event: Event) -> None:
        self._generations.apply(event, self._now)
        self._outcome.events.append(event)
        if isinstance(event, Generation):
            self._now += self._run.regroup_seconds
            self._hand_over(event)
            models = {member: self._models[member] for member in event.members}
            self._set_shares(best_shares(event.first_step, self._run.order.batch, models, self._most()))

    def _hand_over(self, made: Generation) -> None:
        """Give the state of rank 0 to those behind. There are no checkpoints: from one, a run begins anew."""
        first = made.members[0]
        if made.from_checkpoint:
            self._states[first] = []
        for member in made.behind:
            self._states[member] = list(self._states[first])

    def _set_shares(self, shares: Shares) -> None:
        if self._sharing is Sharing.EQUAL:
            members, batch = sorted(shares.samples), self._run.order.batch
            shares = replace(shares, samples=shrink(dict.fromkeys(members, batch), batch))
        if shares != self._shares:
            self._outcome.changes.append(shares)
        self._shares = shares

    def _make_step(self, members: tuple[str, ...]) -> None:
        step, begun = len(self._states[members[0]]), self._now
        if self._sharing is Sharing.ADAPTIVE:
            models = {member: self._models[member] for member in members}
            self._set_shares(reconsider(self._shares, step, models, self._most()))
        samples = self._run.order.of_step(*self._run.order.locate(step))
        assigned = assign_in_order(samples, shrink(self._shares.samples, len(samples)))
        compute = {
            member: self._run.nodes[member].seconds(len(part), begun, self._draw) for member, part in assigned.items()
        }
        computed = begun + max(compute.values())
        bound = self._run.bound_seconds(members, len(samples), begun)
        done = StepDone(step, begun, computed + self._run.comm_seconds - begun, bound, assigned)
        self._end_step(members, done, computed)
        for member, seconds in compute.items():
            if self._sharing is Sharing.ADAPTIVE and self._run.nodes[member].is_alive(self._now):
                self._models[member] = self._models[member].see(len(assigned[member]), seconds)

    def _end_step(self, members: tuple[str, ...], done: StepDone, computed: float) -> None:
        """Let members apply the step. When one is lost while they exchange, only every second one gets to that."""
        lost = min(self._run.nodes[member].lost_at for member in members)
        ends = done.begun + done.seconds
        self._now = min(ends, max(lost, done.begun))
        if lost >= ends:
            appliers = members
        else:
            appliers = members[::2] if lost > computed else ()
            self._outcome.repeated += 1
            self._generations.doubt(self._outcome.generations[-1].number, "a member was lost")
        for member in appliers:
            self._states[member].append(done)

    def _is_running(self) -> bool:
        return self._generations.phase is Phase.RUNNING

    def _most(self) -> dict[str, int]:
        return dict.fromkeys(self._run.nodes, self._run.order.batch)
