"""Rounds: on thin networks each member makes several steps of its own before all average what they have found.

    theta = theta at the start + sum over the members of (b_i / B) * what member i has changed

b_i of the B samples of the round are member i's own. The moments of the optimizer, and running means and variances, are
averaged likewise. Other buffers, such as counts, become those of the member that computed most samples. So members are
equal again at the end of each round, bit for bit, and any of them can hand its state on. A round ends with its epoch at
the latest. One of a single step is made as if there were no rounds: it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from learning.errors import LearningError
from learning.learners import Learner
from learning.member.membership import Membership
from learning.member.step_vector import Heard, StepVector
from locality.training.sample_order import SampleOrder
from locality.training.sync import AutoSync, parse_sync
from locality.types import PlanError


class Rounds:
    """Of one member; `sync` is what a user writes. LearningError when it is something else."""

    def __init__(self, sync: str, learner: Learner, order: SampleOrder) -> None:
        try:
            found = parse_sync(sync)
        except PlanError as error:
            raise LearningError(error.message, error.remedy) from None
        self.sync = sync
        self._learner = learner
        self._order = order
        self._local_steps = found.local_steps
        self._auto = AutoSync() if found.is_auto else None
        self._kept: bytes | None = None
        self._start = torch.zeros(0)
        self._loss = self._seconds = 0.0
        self._samples = 0

    @property
    def warning(self) -> str:
        """What users are to know; nothing where the run is exact."""
        if self._auto:
            return "sync auto: while the network is thin members average only now and then, which is not exact"
        if self._local_steps > 1:
            return f"sync {self.sync}: members average after {self._local_steps} steps, which is not exact"
        return ""

    @property
    def local_steps(self) -> int:
        """Of a round that its epoch does not cut short."""
        return self._auto.local_steps if self._auto else self._local_steps

    def steps(self, first: int) -> range:
        """The steps of the round that begins with this one."""
        _, of_epoch = self._order.locate(first)
        return range(first, first + min(self.local_steps, self._order.steps - of_epoch))

    def begin(self) -> None:
        """Keep the state at the start of a round of several steps."""
        self._kept = self._learner.state()
        self._start, _ = self._learner.values()
        self._loss = self._seconds = 0.0
        self._samples = 0

    def apply(self, vector: StepVector, samples: int) -> None:
        """Make a step with this member's own gradient, the mean over so many samples; 0 when there are none.

        Without samples too, so that all members' optimizers and schedulers have made as many steps.
        """
        told = vector.read()
        self._learner.apply(vector.gradient)
        self._loss += told.loss * samples
        self._seconds += told.seconds[0]
        self._samples += samples

    def contribution(self, rank: int, members: int, samples: int) -> StepVector:
        """What this member adds to the average of a round that has so many samples in all."""
        parameters, others = self._learner.values()
        vector = StepVector(len(parameters) + len(others), rank, members, self._learner.dtype)
        weight = self._samples / samples
        if weight:
            torch.mul(torch.cat([parameters - self._start, others]), weight, out=vector.gradient)
            vector.add(self._loss / self._samples, weight, self._seconds)
        return vector

    def level(self, mine: Membership, samples: Mapping[str, int]) -> None:
        """Let all have what cannot be averaged as the member has it that computed most samples; Broken when it breaks.

        `samples` are those of each member in the round.
        """
        own = self._learner.counts()
        if own:
            most = max(range(len(mine.members)), key=lambda rank: samples[mine.members[rank]])
            self._learner.set_counts(mine.group.spread(own if mine.rank == most else None, most))

    def end(self, vector: StepVector) -> None:
        """Continue from the average."""
        changed, others = vector.gradient.split([self._learner.size, len(vector.gradient) - self._learner.size])
        self._learner.set_values(self._start + changed, others)
        self._kept = None

    def undo(self) -> None:
        """Be as at the start of a round that came to no end."""
        if self._kept is not None:
            self._learner.load(self._kept)
            self._kept = None

    def see(self, mine: Membership, steps: range, heard: Heard, waited: float) -> None:
        """Choose the length of the next round by how long members waited in the exchange that ends this one.

        Who came last waited for the network alone. Broken when they cannot tell each other.
        """
        if self._auto is None:
            return
        waits = torch.zeros(len(mine.members), dtype=torch.float64)
        waits[mine.rank] = waited
        mine.group.add_up(waits)
        before, compute = self.local_steps, max(heard.seconds) / len(steps)
        if compute > 0:
            self._auto = self._auto.see(float(waits.min()), compute)
        if self.local_steps != before and not mine.rank:
            print(f"nodewise: members average after {self.local_steps} steps from step {steps.stop} on", flush=True)

    def to_json(self) -> dict[str, int] | None:
        """What the choice of lengths depends on; None when they are fixed."""
        return asdict(self._auto) if self._auto else None

    def load(self, body: Any) -> None:
        """Continue from what another member has, or a run that may have chosen in another way."""
        if self._auto:
            self._auto = AutoSync(**body) if body else AutoSync()
