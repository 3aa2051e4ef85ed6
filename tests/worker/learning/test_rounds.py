"""Members that average after steps of their own find what the same steps find that are made by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from learning.errors import LearningError
from learning.lead.leader import Leader
from learning.learners.torch_module import TorchModule
from learning.member.membership import Membership
from learning.member.rounds import Rounds
from learning.member.run import Run
from learning.member.step_vector import Heard, StepVector
from learning.state.checkpoints import Checkpoints
from locality.training.generation_events import Checkpointed, Event, Generation
from locality.training.generations import MemberRules
from locality.training.sample_order import SampleOrder
from tests.worker.learning.rounds_by_hand import NAMES, Killed, Make, Played, loss_of, make_rounds

SAMPLES, BATCH, EPOCHS = 230, 20, 3
STEPS = 12
"""Of an epoch, whose last batch is short."""
PACE = {"a": 0.0008, "b": 0.0004, "c": 0.0002}
"""Seconds of a sample."""
EXACT = 1e-10

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, centered=True),
}


def network(optimizer: str = "Adam", *more: Callable[[], torch.nn.Module]) -> Make:
    """What each member begins with."""

    def make() -> tuple[torch.nn.Module, torch.optim.Optimizer, Any]:
        layers = [torch.nn.Linear(4, 8), *[one() for one in more], torch.nn.Tanh(), torch.nn.Linear(8, 1)]
        model = torch.nn.Sequential(*layers).double()
        chance = torch.Generator().manual_seed(11)  # threads share torch's own
        for one in model.parameters():
            one.data.copy_(torch.randn(one.shape, generator=chance, dtype=torch.float64) / 2)
        made = OPTIMIZERS[optimizer](model.parameters())
        return model, made, torch.optim.lr_scheduler.StepLR(made, 7, 0.8)

    return make


def played(sync: str, optimizer: str = "Adam", **more: Any) -> Played:
    x = torch.randn(SAMPLES, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    return Played(network(optimizer), **{"x": x, "batch": BATCH, "epochs": EPOCHS, "sync": sync, "pace": PACE, **more})


@pytest.fixture
def events() -> list[Event]:
    """What was recorded."""
    return []


@pytest.fixture
def leader(events: list[Event]) -> Leader:
    return lead(events)


def lead(events: list[Event], attempt: int = 1, stored: int = 0) -> Leader:
    rules = MemberRules(least=1, most=3, gather_seconds=60.0, silence_seconds=60.0, suspect_seconds=60.0)
    return Leader(attempt, rules, events.append, time.monotonic, [Checkpointed(0, stored)])


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([one.detach().reshape(-1) for one in model.parameters()])


def check(run: Played) -> None:
    """All members have the same bits, which are those of rounds by hand, and each sample was used once an epoch."""
    found = [flat(one) for one in run.found.values()]
    assert all(torch.equal(one, found[0]) for one in found)
    assert (found[0] - flat(make_rounds(run))).abs().max() < EXACT
    for epoch in range(run.epochs):
        rounds = [own for first, own in run.parts().items() if run.order.locate(first)[0] == epoch]
        used = [number for own in rounds for part in own.values() for number in part]
        assert sorted(used) == list(range(len(run.x)))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_of_their_own_and_weighted_means(leader: Leader, optimizer: str) -> None:
    run = played("local:5", optimizer)

    run.play(leader)

    check(run)
    assert run.starts() == [epoch * STEPS + step for epoch in range(EPOCHS) for step in (0, 5, 10)]


@pytest.mark.parametrize("sync", ["local:2", "local:11", "local:12", "local:1000"])
def test_a_round_ends_with_its_epoch(leader: Leader, sync: str) -> None:
    run = played(sync)

    run.play(leader)

    check(run)
    local_steps = int(sync.partition(":")[2])
    assert run.starts() == [first for first in range(EPOCHS * STEPS) if first % STEPS % local_steps == 0]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_one_step_of_their_own_is_as_good_as_every_step(optimizer: str) -> None:
    found = {}
    for sync in ("local:1", "every"):
        run = played(sync, optimizer)
        run.play(lead([]))
        check(run)
        found[sync] = flat(run.found["a"])

    assert (found["local:1"] - found["every"]).abs().max() < EXACT


def test_a_round_of_one_step_of_gradient_descent_is_that_of_the_whole_batch() -> None:
    """Such a round is made as without rounds; were it not, nothing would change."""
    model, learner, rounds = alone("SGD")
    x, sizes = torch.randn(30, 4).double(), (18, 12)
    whole = learner_of("SGD")[0]
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.05)
    loss_of(whole, x).backward()
    optimizer.step()
    vectors = []
    for rank, part in enumerate(x.split(sizes)):
        rounds.begin()
        rounds.apply(own_step(model, learner, part), len(part))
        vectors.append(rounds.contribution(rank, 2, len(x)))
        rounds.undo()

    rounds.begin()
    vectors[0].data += vectors[1].data
    rounds.end(vectors[0])

    assert (flat(model) - flat(whole)).abs().max() < EXACT


def test_what_a_member_did_alone_is_undone() -> None:
    """The state is that of the start, moments and all."""
    model, learner, rounds = alone("Adam")
    before = learner.state()
    rounds.begin()
    rounds.apply(own_step(model, learner, torch.randn(9, 4).double()), 9)
    assert learner.state() != before

    rounds.undo()

    assert learner.state() == before


def test_a_member_without_samples_adds_nothing_and_makes_steps_all_the_same() -> None:
    _, learner, rounds = alone("Adam")
    rounds.begin()
    rounds.apply(StepVector(learner.size, 0, 1, learner.dtype), 0)

    vector = rounds.contribution(1, 3, 50)

    assert len(vector.gradient) == 3 * learner.size and not vector.data.any()


def learner_of(optimizer: str) -> tuple[torch.nn.Module, TorchModule]:
    model, made, scheduler = network(optimizer)()
    return model, TorchModule(model, made, scheduler)


def alone(optimizer: str) -> tuple[torch.nn.Module, TorchModule, Rounds]:
    model, learner = learner_of(optimizer)
    return model, learner, Rounds("local:4", learner, SampleOrder(100, 10))


def own_step(model: torch.nn.Module, learner: TorchModule, x: torch.Tensor) -> StepVector:
    """The gradient of some samples."""
    vector = StepVector(learner.size, 0, 1, learner.dtype)
    vector.add(learner.gradient(lambda: loss_of(model, x), 1.0, vector.gradient), 1.0, 0.5)
    return vector


@pytest.mark.parametrize("victim", NAMES)
def test_a_round_in_which_a_member_is_killed_is_made_again_as_a_whole(
    leader: Leader, events: list[Event], victim: str
) -> None:
    batches = [0]

    def kill(name: str, run: Run) -> None:
        if not run.steps:
            time.sleep(0.1)  # beside which it is little when a member has to wait: each gets samples of the next round
        if name == victim and run.steps == 5:
            batches[0] += 1
            if batches[0] == 3:
                raise Killed

    run = played("local:5", on_batch=kill)

    run.play(leader)

    check(run)
    assert set(run.found) == set(NAMES) - {victim}
    made = [(len(one.members), one.first_step) for one in events if isinstance(one, Generation)]
    assert made == [(3, 0), (2, 5)]


def test_all_killed_go_on_from_a_checkpoint_between_two_rounds(tmp_path: Path) -> None:
    def kill_all(name: str, run: Run) -> None:
        if run.steps >= 17:
            raise Killed

    run = played("local:5", on_batch=kill_all)
    run.play(lead([]), lambda: Checkpoints(tmp_path))
    stored = Checkpoints(tmp_path).last
    assert not run.found and stored in (5, 10, 12, 17)

    again = played("local:5", on_batch=lambda name, run: None)
    again.play(lead([], 2, stored), lambda: Checkpoints(tmp_path))

    assert min(again.starts()) == stored
    again.given += [one for one in run.given if one.first < stored]
    check(again)


def test_a_run_goes_on_from_the_checkpoint_of_one_that_averaged_otherwise(tmp_path: Path) -> None:
    def kill_all(name: str, run: Run) -> None:
        if run.steps >= 3:
            raise Killed

    run = played("every", on_batch=kill_all)
    run.play(lead([]), lambda: Checkpoints(tmp_path))
    stored = Checkpoints(tmp_path).last

    again = played("local:4")
    again.play(lead([], 2, stored), lambda: Checkpoints(tmp_path))

    again.given += [one for one in run.given if one.first < stored]
    check(again)
    assert again.starts()[: stored + 2] == [*range(stored + 1), stored + 4]


def test_auto_follows_the_network(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the real exchanges only what they are said to take is made up: a busy machine is a thin network, too."""
    see = Rounds.see

    def see_slow(self: Rounds, mine: Membership, steps: range, heard: Heard, waited: float) -> None:
        thin = 1e6 if 10 <= steps.start < 40 else 0.0
        see(self, mine, steps, heard, thin + 1e6 * mine.rank)

    monkeypatch.setattr(Rounds, "see", see_slow)
    run = played("auto", "SGD", epochs=6)

    run.play(leader)

    check(run)
    assert run.starts() == [*range(14), 21, 24, 32, 36, 44, *range(48, 72)]


class Normalising(torch.nn.BatchNorm1d):  # type: ignore[misc] # PyTorch has no types here
    """It lets a single sample, as a member may have on a busy machine, through as it is: PyTorch refuses that."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if len(x) > 1 else x


def test_running_means_of_normalisation_are_averaged_too(leader: Leader) -> None:
    run = played("local:4")
    run.make = network("Adam", lambda: Normalising(8))

    run.play(leader)

    (first, *others) = [dict(one.named_buffers()) for one in run.found.values()]
    assert first["1.running_mean"].abs().max() > 0.01
    for one in others:
        assert all(torch.equal(one[name], first[name]) for name in ("1.running_mean", "1.running_var"))


class Counting(torch.nn.Module):  # type: ignore[misc] # PyTorch has no types here
    """Counts the samples that it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("scratch", torch.zeros(1, dtype=torch.int64), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += len(x)
        self.scratch += len(x)
        return x


def test_other_buffers_become_those_of_the_member_that_computed_most(leader: Leader) -> None:
    run = played("local:5")
    run.make = network("Adam", Counting)

    run.play(leader)

    most = sum(max(map(len, own.values())) for own in run.parts().values())
    assert {int(one[1].seen) for one in run.found.values()} == {most}
    assert len({int(one[1].scratch) for one in run.found.values()}) > 1


def test_members_that_average_otherwise_are_refused(leader: Leader) -> None:
    run = played("local:4", syncs={"b": "every"})

    with pytest.raises(LearningError, match="another member trains with sync"):
        run.play(leader)


@pytest.mark.parametrize(
    ("sync", "said"),
    [
        ("every", ""),
        ("local:1", ""),
        ("local:16", "nodewise: sync local:16: members average after 16 steps, which is not exact\n"),
        ("auto", "nodewise: sync auto: while the network is thin members average only now and then, "),
    ],
)
def test_what_is_not_exact_is_said_once(sync: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    model, optimizer, _ = network()()

    with Run(model, optimizer, (torch.randn(9, 4).double(),), batch=3, epochs=2, sync=sync) as run:
        for (x,) in run:
            run.step(lambda: model(x).pow(2).mean())  # noqa: B023 called at once

    told = capsys.readouterr().out
    assert told.startswith(said) and told.count("\n") == bool(said)


def test_another_way_to_average_is_refused_in_one_sentence() -> None:
    model, optimizer, _ = network()()

    with pytest.raises(LearningError, match="members cannot average by 'sometimes': write every, auto or local:H"):
        Run(model, optimizer, (torch.randn(9, 4).double(),), batch=3, epochs=2, sync="sometimes")
