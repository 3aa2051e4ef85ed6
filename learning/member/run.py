"""A training run in a user's program: the same loop on each node, and the parameters that one node alone would find.

    with Run(model, optimizer, data, batch=256, epochs=10) as run:
        for x, y in run:                                # this node's part of each global batch
            run.step(lambda: loss(model(x), y))

    g = sum over the nodes of (b_i / B) * mean gradient of node i = the mean gradient of the global batch

Members may come, go and fail: who computes a sample changes, and no sample is missed or used twice. A step that failed
is done again, so the loop gets parts of the same batch once more.
"""

from __future__ import annotations

import atexit
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any

import torch

from learning.errors import LearningError
from learning.lead.calls import Done
from learning.lead.lead import Told
from learning.learners import Learner
from learning.learners.torch_module import TorchModule
from learning.member.comparison import compare
from learning.member.group import Broken
from learning.member.membership import Membership
from learning.member.micro_batch import MicroBatch, is_out_of_memory
from learning.member.own_state import OwnState
from learning.member.readers import Readers
from learning.member.rounds import Rounds
from learning.member.samples import Samples
from learning.member.share_plan import SharePlan
from learning.member.step_vector import StepVector
from learning.member.surroundings import Surroundings, find
from learning.state.checkpoints import Interrupted
from learning.state.storing import Storing
from locality.training.micro_batches import MOST, halve, split
from locality.training.regrouping import NO_STATE
from locality.training.sample_order import SampleOrder

NEWEST = 100
"""Steps of which the longest is told: whoever leads the run waits for members that compute such a step."""


class Run:
    """Iterates over this member's parts of all batches; every method raises LearningError when the run cannot go on.

    batch         samples of a global step, whoever computes them; the last one of an epoch may be shorter
    seed          of the order of samples
    scheduler     of the learning rate; it is stepped once after each global step
    clip_norm     the longest gradient of a global step: a longer one is scaled to it
    micro_batch   the most samples that the loop gets at once; halved when they do not fit into memory
    sync          "every": members average at each step; "local:16": after 16 steps of their own, for thin networks and
                  not exact; "auto": 1 or more by how thin the network is. What started the program may say otherwise
    learner       another engine than PyTorch, in place of model, optimizer, scheduler and clip_norm
    checkpoint_seconds  after which the state is stored again, where whatever started the program names a folder
    surroundings  who leads the run; by default as whatever started the program says, else this process does all
    """

    def __init__(
        self,
        model: torch.nn.Module | None,
        optimizer: torch.optim.Optimizer | None,
        data: Any,
        *,
        batch: int,
        epochs: int,
        seed: int = 0,
        scheduler: Any = None,
        clip_norm: float | None = None,
        micro_batch: int = MOST,
        sync: str = "every",
        learner: Learner | None = None,
        checkpoint_seconds: float = 60.0,
        surroundings: Surroundings | None = None,
    ) -> None:
        for name, value in (("batch", batch), ("epochs", epochs), ("micro_batch", micro_batch)):
            if value < 1:
                raise LearningError(f"{name} is {value}", "give 1 or more")
        self._learner = learner or _torch_learner(model, optimizer, scheduler, clip_norm)
        self._samples = Samples(data)
        self._readers = Readers(self._samples.count, self._samples.places)
        self._local_reads = 0
        self._order = SampleOrder(self._samples.count, min(batch, self._samples.count), seed)
        self._steps_in_all = self._order.steps * epochs
        self._plan = SharePlan(self._order.batch)
        self._micro_batch = micro_batch
        around = surroundings or find(os.environ)
        self._rounds = Rounds(around.sync or sync, self._learner, self._order)
        self._lead = around.lead
        self._membership = Membership(around.lead)
        self._state = OwnState(
            self._learner, self._plan, self._rounds, self._order, self._steps_in_all, self._samples.fingerprint
        )
        self._storing = Storing(around.checkpoints, checkpoint_seconds)
        self._steps = NO_STATE
        self._done = Done()
        self._newest_seconds: deque[float] = deque(maxlen=NEWEST)
        self._vector: StepVector | None = None
        self._handed: MicroBatch | None = None
        self._wants_stop = self._is_stopping = self._has_said_rounding = self._has_left = False
        if self._rounds.warning:
            print(f"nodewise: {self._rounds.warning}", flush=True)

    @property
    def steps(self) -> int:
        """Global steps that were applied."""
        return max(self._steps, 0)

    @property
    def is_stopped(self) -> bool:
        """Whether the run has ended before all its steps were done, as somebody has stopped it."""
        return self._done.is_stopped

    @property
    def loss(self) -> float | None:
        """Of the last global step, the mean over its samples."""
        return self._state.loss

    @property
    def epoch(self) -> int:
        """Of the next step, counted from 0."""
        return self._order.locate(self.steps)[0]

    def __enter__(self) -> Run:
        atexit.register(self._leave_at_exit)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        why = None if kind is None else f"{kind.__name__}: {error}".split("\n", 1)[0]
        if why is None and self._steps < self._steps_in_all and not self.is_stopped:
            why = f"the loop was left after step {self.steps} of {self._steps_in_all}"
        self._leave(why)

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                if not self._membership.is_formed and not self._join():
                    return
                if self._steps == self._steps_in_all or self._is_stopping:
                    self._end()
                    return
                vector = yield from self._compute_round()
                self._conclude(vector)
            except (Broken, Interrupted) as broken:
                self._rounds.undo()
                self._is_stopping = False  # who missed the step does not know of it: one more tells all
                print(f"nodewise: a new group after {self.steps} steps: {broken}", flush=True)
                self._membership.give_up()

    def step(self, loss: Callable[[], Any]) -> None:
        """Compute the gradient of what the loop has just got; `loss` returns the mean over its samples."""
        handed, vector, self._handed = self._handed, self._vector, None
        if handed is None or vector is None:
            raise LearningError("run.step was called without a new batch", "call it once for each batch of the loop")
        try:
            value = self._learner.gradient(loss, handed.weight, vector.gradient)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self._shrink(error)
        else:
            vector.add(value, handed.weight, time.perf_counter() - handed.began_at)

    def stop(self) -> None:
        """Have the run end for all members after the step that is computed; with `sync`, after its round."""
        self._wants_stop = True

    def _leave(self, why: str | None) -> None:
        """Take part no more, and say why; once."""
        if not self._has_left:
            self._has_left = True
            atexit.unregister(self._leave_at_exit)
            self._membership.leave(why)
            self._samples.close()

    def _leave_at_exit(self) -> None:
        """Of a loop that a generator holds, Python only leaves the block when no thread can do anything any more."""
        self._leave(f"the program ended after step {self.steps} of {self._steps_in_all}")

    def _join(self) -> bool:
        """Become a member of the next generation, with the state that it begins with; False when the run has ended."""
        self._lead.tell(self._done, self._storing.last)
        told = self._membership.form(self._steps)
        if told is None:
            steps = self._lead.finished() or self._steps_in_all
            if self._steps < steps:
                print("nodewise: the run was done before this process could join", flush=True)
                self._state.load(self._storing.read(steps, lambda: False))
            self._steps = steps
            self._tell_stopped()
            return False
        made, mine = told.generation, self._membership
        if made.from_checkpoint and made.first_step and not mine.rank:
            self._state.load(self._storing.read(made.first_step, mine.is_over))
        if made.first_step > self._steps_in_all:
            raise LearningError(
                f"the run has done {made.first_step} steps already, and this program ends after {self._steps_in_all}",
                "give as many epochs or more, or begin a new run",
            )
        self._take_over(told)
        self._steps = made.first_step
        share = self._plan.share_of(mine.process)
        self._done = replace(self._done, steps=self._steps, steps_in_all=self._steps_in_all, share=share)
        self._lead.tell(self._done, self._storing.last)
        return True

    def _take_over(self, told: Told) -> None:
        """Let all members know the same of the run, and those that are behind have the state of rank 0."""
        made, mine = told.generation, self._membership
        own = None
        if not mine.rank:
            self._plan.begin(made.members, made.first_step, told.measures)
            own = self._state.pack() if made.behind else self._state.pack_plan()
        given = mine.group.spread(own)
        if mine.rank:
            self._state.take_over(given, is_behind=mine.process in made.behind)
        self._readers.load(mine.group.spread(None if mine.rank else self._readers.pack(made.members, told.nodes)))

    def _end(self) -> None:
        """Let nobody leave who has a state that others lack, nor before the last state is stored."""
        self._compare()
        if not self._membership.rank:
            self._storing.ensure(self._steps, self._state.pack, confirmed=self._lead.confirmed())
            self._lead.tell(self._done, self._storing.last)
        self._membership.group.add_up(torch.zeros(1))
        self._tell_stopped()

    def _tell_stopped(self) -> None:
        """The run has ended: others may not know yet that it has more steps."""
        self._done = replace(self._done, is_stopped=self._steps < self._steps_in_all)
        self._lead.tell(self._done, self._storing.last)

    def _compute_round(self) -> Generator[Any, None, StepVector]:
        """Yield what is to be computed before members exchange the next time; what this member adds to that."""
        self._local_reads = 0
        steps, rank, members = self._rounds.steps(self._steps), self._membership.rank, len(self._membership.members)
        if len(steps) == 1:
            return (yield from self._compute(self._steps, self._batch_size(self._steps), rank, members))
        self._rounds.begin()
        for step in steps:
            own = self._shares([step])[self._membership.process]
            self._rounds.apply((yield from self._compute(step, own, 0, 1)), own)
        return self._rounds.contribution(rank, members, sum(map(self._batch_size, steps)))

    def _compute(self, step: int, whole: int, rank: int, members: int) -> Generator[Any, None, StepVector]:
        """Yield the micro-batches of this member's part, until all their gradients are in the vector.

        It is the mean over `whole` samples.
        """
        while True:
            mine, size = self._membership, self._micro_batch
            vector = self._vector = StepVector(self._learner.size, rank, members, self._learner.dtype)
            pieces = self._own_numbers(step)
            for place, numbers in enumerate(pieces, start=1):
                began = time.perf_counter()
                given = self._read(numbers, partial(self._following, step, pieces[place:]))
                if self._micro_batch < size:
                    break
                self._handed = MicroBatch(len(numbers) / whole, began)
                yield given
                if self._has_batch():
                    raise LearningError("the loop did not call run.step", "call it once for each batch of the loop")
                if mine.is_over():
                    raise Broken("the generation is over")
                if self._micro_batch < size:
                    break
            else:
                self._local_reads += sum(self._readers.count_local(numbers, mine.rank) for numbers in pieces)
                return vector

    def _read(self, numbers: list[int], following: Callable[[], list[int]]) -> Any:
        """These samples; nothing, and smaller micro-batches from now on, when they do not fit into memory."""
        try:
            return self._samples.batch(numbers, following, self._membership.is_over)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self._shrink(error)
            return None

    def _has_batch(self) -> bool:
        """Whether the loop has got a batch that it did not call `step` for."""
        return self._handed is not None

    def _own_numbers(self, step: int) -> list[list[int]]:
        """The numbers of this member's samples in a step, by the present shares, in micro-batches."""
        numbers = self._order.of_step(*self._order.locate(step))
        shares, mine = self._plan.of(len(numbers)), self._membership
        own = iter(self._readers.own(numbers, [shares[member] for member in mine.members], mine.rank))
        return [list(islice(own, size)) for size in split(shares[mine.process], self._micro_batch)]

    def _following(self, step: int, left: list[list[int]]) -> list[int]:
        """What is read next: what is `left` of this step, or of the next one, if shares stay as they are."""
        if not left and step + 1 < self._steps_in_all:
            left = self._own_numbers(step + 1)
        return left[0] if left else []

    def _conclude(self, vector: StepVector) -> None:
        """Add up what all have computed, and apply it."""
        mine, steps = self._membership, self._rounds.steps(self._steps)
        samples = self._shares(steps)
        is_stop = self._wants_stop or self._lead.is_stopping()
        is_due = not mine.rank and self._storing.is_due(self._lead.confirmed())
        vector.close(f"{self._steps} {samples}", is_last=mine.decides_to_end(), is_stop=is_stop, is_stored=is_due)
        began = time.perf_counter()
        mine.group.add_up(vector.data)
        waited = time.perf_counter() - began
        heard = vector.read()
        heard.check(self._steps, mine.members)
        self._rounds.see(mine, steps, heard, waited)
        if len(steps) == 1:
            self._learner.apply(vector.gradient)
        else:
            self._rounds.level(mine, samples)
            self._rounds.end(vector)
        seconds = dict(zip(mine.members, (one / len(steps) for one in heard.seconds), strict=True))
        self._plan.see(steps[-1], {name: round(one / len(steps)) for name, one in samples.items()}, seconds)
        self._steps += len(steps)
        self._state.loss = heard.loss
        self._tell(samples[mine.process], heard.seconds[mine.rank], waited, len(steps))
        if heard.is_stored:
            self._compare()
        if not mine.rank:
            self._store(is_compared=heard.is_stored)
        mine.look_after_store()
        if heard.is_stop:
            self._wants_stop = self._is_stopping = True
        elif heard.is_last:
            mine.give_up()

    def _compare(self) -> None:
        """LearningError when not all members have the same parameters; what differs by rounding is said once."""
        differ = compare(self._membership, self._learner.values()[0], self._steps)
        if differ and not self._membership.rank and not self._has_said_rounding:
            self._has_said_rounding = True
            names = ", ".join(differ)
            print(f"nodewise: parameters of {names} differ by rounding from those of the others", flush=True)

    def _store(self, *, is_compared: bool) -> None:
        """Store the state if it is due, and the same at all members."""
        if is_compared:
            self._storing.store(self._steps, self._state.pack, confirmed=self._lead.confirmed())
        else:
            self._storing.say_failure()

    def _tell(self, samples: int, seconds: float, waited: float, steps: int) -> None:
        done = self._done
        self._newest_seconds.append(seconds / steps)
        self._done = Done(
            steps=self._steps,
            steps_in_all=self._steps_in_all,
            samples=done.samples + samples,
            compute_seconds=done.compute_seconds + seconds,
            wait_seconds=done.wait_seconds + waited,
            longest_step_seconds=max(self._newest_seconds),
            loss=self.loss,
            share=self._plan.share_of(self._membership.process),
            reads=done.reads + (samples if self._readers.know_places else 0),
            local_reads=done.local_reads + self._local_reads,
        )
        self._lead.tell(self._done, self._storing.last)

    def _shrink(self, error: BaseException) -> None:
        try:
            self._micro_batch = halve(self._micro_batch)
        except ValueError:
            said = str(error) or type(error).__name__
            raise LearningError(f"one sample does not fit into memory: {said}", "give the run more memory") from error
        print(f"nodewise: out of memory, so batches of {self._micro_batch} samples from now on", flush=True)

    def _shares(self, steps: Iterable[int]) -> dict[str, int]:
        """How many samples of these steps each member computes."""
        shares = [self._plan.of(self._batch_size(step)) for step in steps]
        return {member: sum(one[member] for one in shares) for member in shares[0]}

    def _batch_size(self, run_step: int) -> int:
        """Samples of the global step, at all members together."""
        _, step = self._order.locate(run_step)
        return min(self._order.batch, self._samples.count - step * self._order.batch)


def _torch_learner(
    model: torch.nn.Module | None, optimizer: torch.optim.Optimizer | None, scheduler: Any, clip_norm: float | None
) -> Learner:
    if model is None or optimizer is None:
        raise LearningError("a run needs a model and its optimizer", "or give a learner")
    return TorchModule(model, optimizer, scheduler, clip_norm)
