"""A run of one process: it does what a plain loop does, and says what is wrong with a program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from learning.errors import LearningError
from learning.lead.calls import Done
from learning.lead.lead import Alone, Told
from learning.member.group import Broken
from learning.member.run import NEWEST, Run
from learning.member.surroundings import Surroundings
from learning.state.checkpoints import Checkpoints
from locality.training.sample_order import SampleOrder

SAMPLES, BATCH, EPOCHS = 100, 30, 3


class Numbered(Dataset[Any]):  # type: ignore[misc] # PyTorch has no types here
    def __init__(self, x: torch.Tensor) -> None:
        self._x = x

    def __len__(self) -> int:
        return len(self._x)

    def __getitem__(self, number: int) -> torch.Tensor:
        return self._x[number]


def model_and_data() -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(2)
    return torch.nn.Linear(5, 1).double(), torch.randn(SAMPLES, 5).double()


def optimizer_of(model: torch.nn.Module) -> tuple[torch.optim.Optimizer, Any]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 4)


def plain() -> tuple[torch.nn.Module, float]:
    model, x = model_and_data()
    optimizer, scheduler = optimizer_of(model)
    order = SampleOrder(SAMPLES, BATCH, 5)
    for step in range(order.steps * EPOCHS):
        optimizer.zero_grad()
        loss = model(x[torch.as_tensor(order.of_step(*order.locate(step)))]).pow(2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return model, loss.item()


def train(data: Callable[[torch.Tensor], Any], micro_batch: int = 128, fails: int = 0) -> tuple[torch.nn.Module, Run]:
    """`fails`: so many times there is no memory for more than 8 samples."""
    model, x = model_and_data()
    optimizer, scheduler = optimizer_of(model)
    left = [fails]

    def loss(a: torch.Tensor) -> torch.Tensor:
        if len(a) > 8 and left[0]:
            left[0] -= 1
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        found: torch.Tensor = model(a).pow(2).mean()
        return found

    run = Run(
        model, optimizer, data(x), batch=BATCH, epochs=EPOCHS, seed=5, scheduler=scheduler, micro_batch=micro_batch
    )
    with run:
        for given in run:
            a = given[0] if isinstance(given, tuple) else given
            run.step(lambda: loss(a))  # noqa: B023 called at once
    return model, run


@pytest.mark.parametrize("micro_batch", [128, 7])
@pytest.mark.parametrize("data", [lambda x: (x,), Numbered], ids=["tensors", "a data set"])
def test_it_finds_what_a_plain_loop_finds(data: Callable[[torch.Tensor], Any], micro_batch: int) -> None:
    model, run = train(data, micro_batch)
    expected, loss = plain()

    for one, other in zip(model.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-12)
    assert run.loss == pytest.approx(loss, abs=1e-12)
    assert (run.steps, run.epoch) == (12, 3)


def test_what_does_not_fit_into_memory_is_tried_in_halves(capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = train(lambda x: (x,), micro_batch=32, fails=2)
    expected, _ = plain()

    assert all(map(torch.allclose, model.parameters(), expected.parameters()))
    assert capsys.readouterr().out.splitlines() == [
        "nodewise: out of memory, so batches of 16 samples from now on",
        "nodewise: out of memory, so batches of 8 samples from now on",
    ]


class Narrow(Numbered):
    """No more than so many samples can be read at once."""

    def __init__(self, x: torch.Tensor, most: int, *, reads_ahead: bool) -> None:
        super().__init__(x)
        self._most = most
        self.reads_ahead = reads_ahead

    def batch_of(self, numbers: Sequence[int]) -> torch.Tensor:
        if len(numbers) > self._most:
            np.empty(1 << 60, np.uint8)  # what numpy says where memory ends
        return torch.stack([self[number] for number in numbers])


@pytest.mark.parametrize("reads_ahead", [False, True])
def test_what_cannot_be_read_at_once_is_read_in_halves(reads_ahead: bool, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = train(lambda x: Narrow(x, 8, reads_ahead=reads_ahead), micro_batch=32)
    expected, _ = plain()

    assert all(map(torch.allclose, model.parameters(), expected.parameters()))
    assert capsys.readouterr().out.splitlines() == [
        "nodewise: out of memory, so batches of 16 samples from now on",
        "nodewise: out of memory, so batches of 8 samples from now on",
    ]


def test_a_sample_that_cannot_be_read_for_want_of_memory_is_told_in_one_sentence() -> None:
    with pytest.raises(LearningError, match=r"^one sample does not fit into memory: Unable to allocate .*: give the"):
        train(lambda x: Narrow(x, 0, reads_ahead=True))


def test_other_errors_of_the_program_are_its_own() -> None:
    model, x = model_and_data()
    optimizer, _ = optimizer_of(model)

    with pytest.raises(RuntimeError, match="mat1 and mat2"), Run(model, optimizer, (x,), batch=9, epochs=1) as run:
        for _ in run:
            run.step(lambda: model(torch.ones(1, 2).double()).sum())


class Heard(Alone):
    """Keeps what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[int, Done] = {}

    def tell(self, done: Done, checkpoint: int) -> None:
        self.told[done.steps] = done


def test_the_longest_step_that_is_told_is_of_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = model_and_data()
    lead, slow, now = Heard(), 0.5, [0.0]
    monkeypatch.setattr("learning.member.run.time", SimpleNamespace(perf_counter=lambda: now[0]))
    with Run(model, optimizer_of(model)[0], (x,), batch=50, epochs=60, surroundings=Surroundings(lead, None)) as run:
        for (batch,) in run:
            if run.steps == 1:
                now[0] += slow
            run.step(lambda: model(batch).pow(2).mean())  # noqa: B023 called at once

    assert lead.told[NEWEST + 1].longest_step_seconds >= slow > lead.told[NEWEST + 2].longest_step_seconds


def test_a_step_without_a_batch_is_refused() -> None:
    model, x = model_and_data()
    optimizer, _ = optimizer_of(model)

    with (
        pytest.raises(LearningError, match=r"run.step was called without a new batch: call it once for each"),
        Run(model, optimizer, (x,), batch=9, epochs=1) as run,
    ):
        for (a,) in run:
            run.step(lambda: model(a).sum())  # noqa: B023 called at once
            run.step(lambda: model(a).sum())  # noqa: B023 called at once


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ((torch.ones(3), torch.ones(4)), "the tensors have 3, 4 samples: give as many in each of them"),
        ((torch.ones(0),), "the data has no samples"),
        (iter([1]), "a list_iterator does not tell how many samples it has"),
    ],
)
def test_data_that_cannot_be_numbered_is_refused(data: Any, said: str) -> None:
    model, _ = model_and_data()
    optimizer, _ = optimizer_of(model)

    with pytest.raises(LearningError, match=said):
        Run(model, optimizer, data, batch=2, epochs=1)


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"epochs": 0}, {"epochs": -1}, {"micro_batch": 0}])
def test_numbers_below_one_are_refused(wrong: dict[str, int]) -> None:
    model, x = model_and_data()
    optimizer, _ = optimizer_of(model)
    ((name, value),) = wrong.items()

    with pytest.raises(LearningError, match=f"{name} is {value}: give 1 or more"):
        Run(model, optimizer, (x,), **{"batch": 2, "epochs": 1, **wrong})  # type: ignore[arg-type]


class Listening(Alone):
    """Notes how the member left."""

    why: str | None = "it has not left"

    def close(self, why: str | None) -> None:
        self.why = why


def test_a_loop_that_is_left_early_is_told(tmp_path: Path) -> None:
    model, x = model_and_data()
    optimizer, _ = optimizer_of(model)
    lead = Listening()

    around = Surroundings(lead, None)
    with Run(model, optimizer, (x,), batch=50, epochs=2, surroundings=around) as run:
        for (a,) in run:
            run.step(lambda: model(a).mean())  # noqa: B023 called at once
            break

    assert lead.why == "the loop was left after step 0 of 4"


def test_a_resumed_run_of_fewer_epochs_is_refused_and_one_of_more_goes_on(tmp_path: Path) -> None:
    def train(epochs: int, steps: int) -> Run:
        model, x = model_and_data()
        optimizer, _ = optimizer_of(model)
        lead = Resumed(steps)
        around = Surroundings(lead, Checkpoints(tmp_path))
        with Run(model, optimizer, (x,), batch=50, epochs=epochs, surroundings=around) as run:
            for (a,) in run:
                run.step(lambda: model(a).mean())  # noqa: B023 called at once
        return run

    train(3, -1)
    with pytest.raises(LearningError, match="the run has done 6 steps already, and this program ends after 4"):
        train(2, 6)
    assert train(4, 6).steps == 8


@pytest.mark.parametrize("at", ["before", "after"])
def test_a_program_may_end_its_run_after_any_step(at: str) -> None:
    model, x = model_and_data()
    optimizer, _ = optimizer_of(model)
    lead = Listening()
    with Run(model, optimizer, (x,), batch=50, epochs=4, micro_batch=20, surroundings=Surroundings(lead, None)) as run:
        assert not run.is_stopped
        for (a,) in run:
            if at == "before" and run.steps == 2:
                run.stop()
            run.step(lambda: model(a).mean())  # noqa: B023 called at once
            if at == "after" and run.steps == 2:
                run.stop()

    assert (run.steps, run.is_stopped, lead.why) == (3, True, None)


def test_a_stop_at_the_last_step_is_none() -> None:
    model, x = model_and_data()
    optimizer, _ = optimizer_of(model)
    with Run(model, optimizer, (x,), batch=50, epochs=2) as run:
        for (a,) in run:
            if run.steps == 3:
                run.stop()
            run.step(lambda: model(a).mean())  # noqa: B023 called at once

    assert (run.steps, run.is_stopped) == (4, False)


def test_a_group_that_breaks_when_a_run_stops_makes_one_more_step_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = model_and_data()
    optimizer, _ = optimizer_of(model)
    end, failures = Run._end, [Broken("a member was killed")]

    def fail_once(run: Run) -> None:
        if failures:
            raise failures.pop()
        end(run)

    monkeypatch.setattr(Run, "_end", fail_once)
    with Run(model, optimizer, (x,), batch=50, epochs=4) as run:
        for (a,) in run:
            if run.steps == 2:
                run.stop()
            run.step(lambda: model(a).mean())  # noqa: B023 called at once

    assert (run.steps, run.is_stopped) == (4, True)


class Resumed(Alone):
    """Goes on from a checkpoint after so many steps, -1 for the beginning."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._from = steps

    def next_generation(self, after: int, steps: int, store: Callable[[], str]) -> Told:
        told = super().next_generation(after, steps, store)
        if self._from < 0:
            return told
        return replace(told, generation=replace(told.generation, first_step=self._from, from_checkpoint=True))


GENERATOR = """
import torch
from nodewise.learning import Run

model = torch.nn.Linear(1, 1)

def steps():
    with Run(model, torch.optim.SGD(model.parameters(), lr=0.1), (torch.ones(20, 1),), batch=10, epochs=2) as run:
        for (x,) in run:
            run.step(lambda: model(x).mean())
            yield run.steps

held = steps()
print(next(held), next(held))
"""


def test_a_program_that_ends_amid_a_loop_that_a_generator_holds_does_end() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GENERATOR], capture_output=True, text=True, timeout=120, check=True
    )

    assert ran.stdout == "0 1\n"
