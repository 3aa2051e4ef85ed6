"""Runs whose members are threads of one process, and the same rounds made by hand, one member after the other."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from learning.lead.calls import Answer, Doing, Done, Say
from learning.lead.lead import Told
from learning.lead.leader import Leader
from learning.member.run import Run
from learning.member.surroundings import Surroundings
from learning.state.checkpoints import Checkpoints
from locality.training.sample_order import SampleOrder

NAMES = ("a", "b", "c")
SEED = 5
Made = tuple[torch.nn.Module, torch.optim.Optimizer, Any]
Make = Callable[[], Made]


class Killed(Exception):
    """A member is no more."""


@dataclass(frozen=True)
class Given:
    """What a loop got: samples, in the round that begins with a step, in a generation."""

    member: str
    generation: int
    first: int
    numbers: tuple[int, ...]


@dataclass
class Played:
    """Runs of members. `pace` are seconds that each takes for a sample, `syncs` those that average otherwise.

    `on_batch` hears of each batch before its step is made, and may raise Killed.
    """

    make: Make
    x: torch.Tensor
    batch: int
    epochs: int
    sync: str
    pace: dict[str, float] = field(default_factory=dict)
    syncs: dict[str, str] = field(default_factory=dict)
    on_batch: Callable[[str, Run], None] = lambda name, run: None
    given: list[Given] = field(default_factory=list)
    found: dict[str, torch.nn.Module] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)

    def play(self, leader: Leader, checkpoints: Callable[[], Checkpoints | None] = lambda: None) -> None:
        """Until all members have ended, and what they store is stored."""
        threads = [threading.Thread(target=self._train, args=(name, leader, checkpoints)) for name in NAMES]
        for one in threads:
            one.start()
        for one in threads:
            one.join(120)
            assert not one.is_alive()
        for one in threading.enumerate():
            if one.name == "checkpoint":
                one.join()
        if self.errors:
            raise self.errors[0]

    def starts(self) -> list[int]:
        """The first steps of all rounds."""
        return sorted({one.first for one in self.given})

    @property
    def order(self) -> SampleOrder:
        return SampleOrder(len(self.x), self.batch, SEED)

    def parts(self) -> dict[int, dict[str, set[int]]]:
        """By the first step of each round, which samples each member computed when that was done for the last time."""
        last = {first: max(one.generation for one in self.given if one.first == first) for first in self.starts()}
        parts: dict[int, dict[str, set[int]]] = {first: {} for first in last}
        for one in self.given:
            if one.generation == last[one.first]:
                part = parts[one.first].setdefault(one.member, set())
                assert not part & set(one.numbers)
                part.update(one.numbers)
        return parts

    def _train(self, name: str, leader: Leader, checkpoints: Callable[[], Checkpoints | None]) -> None:
        model, optimizer, scheduler = self.make()
        lead = InProcess(leader, name)
        settings: dict[str, Any] = {"batch": self.batch, "epochs": self.epochs, "seed": SEED, "scheduler": scheduler}
        numbers = torch.arange(len(self.x))
        around = Surroundings(lead, checkpoints(), self.syncs.get(name, self.sync))
        try:
            with Run(
                model, optimizer, (self.x, numbers), surroundings=around, checkpoint_seconds=0.0, **settings
            ) as run:
                for x, own in run:
                    self.given.append(Given(name, lead.number, run.steps, tuple(own.tolist())))
                    time.sleep(self.pace.get(name, 0.0) * len(x))
                    self.on_batch(name, run)
                    run.step(lambda: loss_of(model, x))  # noqa: B023 called at once
            self.found[name] = model
        except Killed:
            leader.lose(name, "killed")
        except BaseException as error:
            self.errors.append(error)


class InProcess:
    """A member's way to a leader that is in this process."""

    host = "127.0.0.1"

    def __init__(self, leader: Leader, process: str) -> None:
        self.process = process
        self.number = 0
        self._leader = leader
        self._done = Done()
        self._calls = self._checkpoint = 0

    def next_generation(self, after: int, steps: int, store: Callable[[], str]) -> Told | None:
        while True:
            answer = self._call(Doing.WAITS, after, steps, store())
            self._leader.tick()
            if answer.is_done:
                return None
            made = answer.generation
            if made and made.number > after and self.process in made.members and not answer.is_over:
                self.number = made.number
                return Told(made, answer.measures)
            time.sleep(0.01)

    def is_over(self, number: int) -> bool:
        answer = self._call(Doing.COMPUTES, number, self._done.steps)
        return answer.generation is None or answer.generation.number != number or answer.is_over

    def is_ending(self, number: int) -> bool:
        return self._call(Doing.COMPUTES, number, self._done.steps).is_ending

    def finished(self) -> int:
        return self._call(Doing.COMPUTES, self.number, self._done.steps).finished

    def is_stopping(self) -> bool:
        return self._call(Doing.COMPUTES, self.number, self._done.steps).is_stopping

    def tell(self, done: Done, checkpoint: int) -> None:
        self._done, self._checkpoint = done, checkpoint

    def complain(self, number: int, members: Sequence[str]) -> None:
        """All are in one process."""

    def confirmed(self) -> int:
        return self._leader.checkpoint

    def close(self, why: str | None) -> None:
        if why is None:
            self._call(Doing.DONE, self.number, self._done.steps)

    def _call(self, doing: Doing, number: int, steps: int, store: str = "") -> Answer:
        self._calls += 1
        said = Say(self.process, doing, number, steps, store, "", self._checkpoint, self._done, self._calls)
        return self._leader.hear(said)


def loss_of(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A mean over samples that no step makes 0."""
    found: torch.Tensor = (model(x).squeeze(1) - x[:, 0] * x[:, 1]).pow(2).mean()
    return found


def make_rounds(run: Played) -> torch.nn.Module:
    """The model after all rounds of a run, from what its members have computed: steps of their own, then means."""
    made, parts = run.make(), run.parts()
    ends = [*parts, run.order.steps * run.epochs][1:]
    for (first, own), end in zip(parts.items(), ends, strict=True):
        batches = [run.order.of_step(*run.order.locate(step)).tolist() for step in range(first, end)]
        if len(batches) == 1:
            _make_step(made, run.x[batches[0]])
            continue
        members = {name: copy.deepcopy(made) for name in NAMES if name in own}
        for batch in batches:
            for name, one in members.items():
                _make_step(one, run.x[[number for number in batch if number in own[name]]])
        samples = sum(map(len, batches))
        made = _mean(list(members.values()), [len(own[name]) / samples for name in members])
    return made[0]


def _make_step(made: Made, x: torch.Tensor) -> None:
    model, optimizer, scheduler = made
    optimizer.zero_grad()
    (loss_of(model, x) if len(x) else sum(one.sum() * 0 for one in model.parameters())).backward()
    optimizer.step()
    scheduler.step()


def _mean(members: Sequence[Made], weights: Sequence[float]) -> Made:
    """The first one, with weighted means of parameters and moments."""
    model, optimizer, _ = members[0]
    with torch.no_grad():
        for place, parameter in enumerate(model.parameters()):
            theirs = [list(one[0].parameters())[place] for one in members]
            parameter.copy_(sum(weight * one for weight, one in zip(weights, [x.clone() for x in theirs], strict=True)))
            for name, value in optimizer.state[parameter].items():
                if name != "step" and torch.is_tensor(value):
                    states = [one[1].state[own][name].clone() for one, own in zip(members, theirs, strict=True)]
                    value.copy_(sum(weight * one for weight, one in zip(weights, states, strict=True)))
    return members[0]
