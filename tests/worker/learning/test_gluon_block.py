"""The learner of MXNet Gluon: exact whoever computes, and a state without code that continues any of its optimizers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import mxnet
import numpy
import pytest
import torch
from mxnet import autograd, gluon

from learning.errors import LearningError
from learning.learners.gluon_block import GluonBlock
from learning.learners.gluon_optimizer import SUPPORTED
from learning.state.plain_state import from_bytes, to_bytes
from nodewise.learning import Run

SAMPLES, FEATURES = 60, 5
DTYPES = ["float32", "float64"]
EXACT = {"float32": 1e-6, "float64": 1e-14}
"""Differences of gradients, whose largest entry is about 0.3."""
SETTINGS: dict[str, dict[str, Any]] = {
    **{name: {} for name in SUPPORTED},
    **{name: {"momentum": 0.9} for name in ("SGD", "NAG", "LARS", "Signum")},
    "RMSProp": {"centered": True},
}

Array = Any
Net = Any


def net_of(dtype: str = "float32", wide: int = 8) -> Net:
    """With numbers that are the same each time, a layer that knows no gradient among them."""
    mxnet.random.seed(5)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(wide, in_units=FEATURES, activation="tanh"))
    net.add(gluon.nn.BatchNorm(in_channels=wide, use_global_stats=True))
    net.add(gluon.nn.Dense(1, in_units=wide))
    net.initialize(mxnet.init.Xavier())
    net.cast(dtype)
    return net


def data_of(dtype: str = "float32") -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.Generator().manual_seed(7)
    x = torch.randn(SAMPLES, FEATURES, dtype=torch.float64, generator=chance)
    return x.to(getattr(torch, dtype)), x[:, :2].sum(1, keepdim=True).tanh().to(getattr(torch, dtype))


def arrays(*tensors: torch.Tensor) -> list[Array]:
    return [mxnet.nd.from_numpy(one.numpy(), zero_copy=False) for one in tensors]


def square(net: Net, x: torch.Tensor, y: torch.Tensor) -> Callable[[], Array]:
    """The loss of each sample, as Gluon gives it."""
    a, b = arrays(x, y)
    return lambda: gluon.loss.L2Loss()(net(a), b)


def numbers(net: Net) -> Array:
    """All of a net's in one vector."""
    return numpy.concatenate([one.data().asnumpy().ravel() for one in net.collect_params().values()])


def differ(net: Net, other: Net) -> float:
    return float(numpy.abs(numbers(net) - numbers(other)).max())


def optimizer_of(name: str, **more: Any) -> Any:
    return mxnet.optimizer.create(name, learning_rate=0.01, **SETTINGS[name], **more)


def taught(net: Net, learner: GluonBlock, steps: int) -> None:
    """Each step over all samples."""
    for _ in range(steps):
        vector = torch.zeros(learner.size, dtype=learner.dtype)
        learner.gradient(square(net, *data_of(str(learner.dtype).removeprefix("torch."))), 1.0, vector)
        learner.apply(vector)


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_a_batch_have_the_gradient_that_mxnet_alone_finds(dtype: str) -> None:
    net, (x, y) = net_of(dtype), data_of(dtype)
    learner = GluonBlock(net, mxnet.optimizer.SGD())
    with autograd.record():
        mean = square(net, x, y)().mean()
    mean.backward()
    trained = [one for one in net.collect_params().values() if one.grad_req != "null"]
    alone = numpy.concatenate([one.grad().asnumpy().ravel() for one in trained])

    vector = torch.zeros(learner.size, dtype=learner.dtype)
    losses = [
        learner.gradient(square(net, x[begin:end], y[begin:end]), (end - begin) / SAMPLES, vector)
        for begin, end in ((0, 7), (7, 8), (8, SAMPLES))
    ]

    assert str(learner.dtype) == f"torch.{dtype}"
    assert numpy.abs(alone).max() > 0.1
    assert numpy.abs(vector.numpy() - alone).max() < EXACT[dtype]
    assert numpy.dot(losses, [7 / SAMPLES, 1 / SAMPLES, 52 / SAMPLES]) == pytest.approx(mean.asscalar(), abs=1e-6)


def test_a_mean_that_the_program_makes_is_a_loss_too() -> None:
    net, (x, y) = net_of(), data_of()
    learner = GluonBlock(net, mxnet.optimizer.SGD())
    each, mean = torch.zeros(learner.size), torch.zeros(learner.size)

    learner.gradient(square(net, x, y), 1.0, each)
    learner.gradient(lambda: square(net, x, y)().mean(), 1.0, mean)

    assert torch.equal(each, mean) and each.abs().sum() > 0


def test_what_a_loss_does_not_use_has_no_gradient_not_the_last_one() -> None:
    net, (x, y) = net_of(), data_of()
    learner = GluonBlock(net, mxnet.optimizer.SGD())
    learner.gradient(square(net, x, y), 1.0, torch.zeros(learner.size))
    into = torch.zeros(learner.size)

    learner.gradient(lambda: net[0](*arrays(x)), 1.0, into)

    assert not into[FEATURES * 8 + 8 :].any()
    assert into[: FEATURES * 8].abs().sum() > 0


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_member_without_samples_makes_the_step_that_a_trainer_makes(name: str) -> None:
    net, by_trainer, standby = net_of(), net_of(), net_of()
    learner, other = GluonBlock(net, optimizer_of(name)), GluonBlock(standby, optimizer_of(name))
    trainer = gluon.Trainer(by_trainer.collect_params(), optimizer_of(name))
    before = numbers(net)
    for _ in range(3):
        with autograd.record():
            loss = square(by_trainer, *data_of())()
        loss.backward()
        trainer.step(SAMPLES)
        vector = torch.zeros(learner.size)
        learner.gradient(square(net, *data_of()), 1.0, vector)
        learner.apply(vector)
        other.apply(vector)

    assert differ(net, standby) == 0
    assert differ(net, by_trainer) < 1e-5
    assert numpy.abs(numbers(net) - before).max() > 1e-3


@pytest.mark.parametrize("name", SUPPORTED)
def test_who_gets_a_state_goes_on_as_if_it_had_made_all_steps(name: str) -> None:
    net, late = net_of(), net_of()
    of_both = [mxnet.lr_scheduler.PolyScheduler(max_update=6, final_lr=0.001) for _ in range(2)]
    learner, other = (
        GluonBlock(each, optimizer_of(name, lr_scheduler=one)) for each, one in zip((net, late), of_both, strict=True)
    )
    late[1].running_mean.data()[:] = 3.0
    taught(net, learner, 4)
    taught(late, other, 1)

    other.load(learner.state())
    taught(net, learner, 4)
    taught(late, other, 4)

    assert differ(net, late) == 0
    assert learner.state() == other.state()
    assert len(numbers(net)) > learner.size, "there are no numbers that are not trained"


def test_a_net_with_convolutions_goes_on_from_a_state_and_from_a_mean_after_it_has_judged_images() -> None:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(64, 3, in_channels=16), gluon.nn.GlobalAvgPool2D(), gluon.nn.Dense(2, in_units=64))
    net.initialize(mxnet.init.Xavier())
    learner = GluonBlock(net, mxnet.optimizer.Adam())
    images = mxnet.nd.random.uniform(shape=(8, 16, 16, 16))
    state, values, judged = learner.state(), learner.values(), net(images).asnumpy()

    learner.set_values(values[0] * 2, values[1])
    assert abs(net(images).asnumpy() - judged).max() > 0
    learner.load(state)

    assert (net(images).asnumpy() == judged).all()
    assert learner.state() == state


def test_a_state_holds_what_the_program_changes_of_an_optimizer() -> None:
    net, late = net_of(), net_of()
    changed, optimizer = optimizer_of("SGD"), optimizer_of("SGD")
    learner = GluonBlock(net, changed)
    changed.set_learning_rate(0.5)

    GluonBlock(late, optimizer).load(learner.state())

    assert optimizer.learning_rate == 0.5


def test_steps_are_counted_on_another_device_than_the_first() -> None:
    learners = []
    for _ in range(2):
        net = gluon.nn.Dense(1, in_units=2, use_bias=False)
        net.initialize(mxnet.init.One(), ctx=mxnet.cpu(1))
        learners.append(GluonBlock(net, mxnet.optimizer.Adam()))
    for _ in range(3):
        learners[0].apply(torch.ones(2))

    learners[1].load(learners[0].state())
    for one in learners:
        one.apply(torch.ones(2))

    assert learners[0].state() == learners[1].state()


def test_the_scheduler_goes_on_where_it_is_beyond_its_last_step() -> None:
    net, late = net_of(), net_of()
    first, second = (mxnet.lr_scheduler.CosineScheduler(max_update=2, base_lr=0.1, final_lr=0.01) for _ in range(2))
    learner = GluonBlock(net, mxnet.optimizer.SGD(lr_scheduler=first))
    optimizer = mxnet.optimizer.SGD(lr_scheduler=second)
    taught(net, learner, 5)

    GluonBlock(late, optimizer).load(learner.state())

    assert optimizer.learning_rate == pytest.approx(0.01)


def test_a_long_gradient_is_scaled_to_the_longest_allowed() -> None:
    net = gluon.nn.Dense(1, in_units=3, use_bias=False)
    net.initialize()
    before = numbers(net)

    GluonBlock(net, mxnet.optimizer.SGD(learning_rate=1.0), clip_norm=5.0).apply(torch.tensor([0.0, 30.0, 40.0]))

    assert before - numbers(net) == pytest.approx([0.0, 3.0, 4.0])


def other_states() -> dict[str, tuple[Callable[[], bytes], str]]:
    def made(net: Net, optimizer: Any) -> bytes:
        return GluonBlock(net, optimizer).state()

    def damaged() -> bytes:
        told = from_bytes(made(net_of(), mxnet.optimizer.Adam()))
        del told["optimizer"]["numbers"]["beta1"]
        return to_bytes(told)

    def deeper() -> Net:
        net = net_of()
        net.add(gluon.nn.Dense(1, in_units=1))
        net.initialize()
        return net

    plain, adam = net_of, mxnet.optimizer.Adam
    stepped = mxnet.lr_scheduler.FactorScheduler(step=3)
    return {
        "another shape": (
            lambda: made(net_of(wide=9), adam()),
            r"weight is float32 of shape \(8, 5\) here, and float32 of shape \(9, 5\) there",
        ),
        "another type": (lambda: made(net_of("float64"), adam()), r"and float64 of shape \(8, 5\) there"),
        "another layer": (lambda: made(deeper(), adam()), "it has 10 parameters, and the net 8"),
        "another optimizer": (
            lambda: made(plain(), mxnet.optimizer.SGD()),
            "it is of SGD, and the optimizer here is Adam",
        ),
        "another scheduler": (lambda: made(plain(), adam(lr_scheduler=stepped)), "it is of Adam with FactorScheduler"),
        "PyTorch": (lambda: to_bytes({"model": {}, "optimizer": {}}), "it has no 'net'"),
        "a part of it": (damaged, "it has no 'beta1'"),
        "nothing": (lambda: b"", "0 bytes are no state"),
    }


@pytest.mark.parametrize(("state", "said"), other_states().values(), ids=other_states())
def test_a_state_of_another_net_is_refused_and_changes_nothing(state: Callable[[], bytes], said: str) -> None:
    net = net_of()
    learner = GluonBlock(net, mxnet.optimizer.Adam())
    before = learner.state()

    with pytest.raises(LearningError, match=f"a state does not fit this net and optimizer: .*{said}.*: begin a new"):
        learner.load(state())

    assert learner.state() == before


def refused() -> dict[str, tuple[Callable[[], Any], str]]:
    def deferred() -> Net:
        net = gluon.nn.Dense(3)
        net.initialize()
        return net

    def frozen() -> Net:
        net = net_of()
        net.collect_params().setattr("grad_req", "null")
        return net

    def on_two() -> Net:
        net = gluon.nn.Dense(3, in_units=2)
        net.initialize(ctx=[mxnet.cpu(0), mxnet.cpu(1)])
        return net

    def sparse() -> Net:
        net = gluon.nn.Embedding(4, 2, sparse_grad=True)
        net.initialize()
        return net

    def used() -> Any:
        optimizer, net = mxnet.optimizer.SGD(), net_of()
        taught(net, GluonBlock(net, optimizer), 1)
        return GluonBlock(net, optimizer)

    class Own(mxnet.optimizer.SGD):  # type: ignore[misc] # MXNet has no types here
        pass

    class Odd(mxnet.lr_scheduler.LRScheduler):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.seen = {1, 2}

    sgd = mxnet.optimizer.SGD
    return {
        "no shape": (lambda: GluonBlock(deferred(), sgd()), r"has the shape \(3, 0\), in which 0 .*: give in_units"),
        "no numbers": (
            lambda: GluonBlock(gluon.nn.Dense(1, in_units=1), sgd()),
            "has no numbers: call net.init",
        ),
        "nothing to train": (lambda: GluonBlock(frozen(), sgd()), "no parameters to train: check their grad_req"),
        "two devices": (lambda: GluonBlock(on_two(), sgd()), r"is on cpu\(0\), cpu\(1\): let each process"),
        "sparse": (lambda: GluonBlock(sparse(), sgd()), "is sparse: build the net without sparse_grad"),
        "SGLD": (
            lambda: GluonBlock(net_of(), mxnet.optimizer.SGLD()),
            "SGLD cannot be trained with: give .*Adam",
        ),
        "a trainer": (
            lambda: GluonBlock(net_of(), gluon.Trainer(net_of().collect_params(), "sgd")),
            "Trainer cannot be trained with",
        ),
        "a class of the program": (lambda: GluonBlock(net_of(), Own()), "Own cannot be trained with"),
        "not in float64": (
            lambda: GluonBlock(net_of("float64"), mxnet.optimizer.RMSProp()),
            "RMSProp does not compute in float64: take another one",
        ),
        "rescaled": (lambda: GluonBlock(net_of(), sgd(rescale_grad=0.5)), "has rescale_grad 0.5: leave it at 1"),
        "used before": (used, "has made steps without this run: give a new one"),
        "a scheduler": (
            lambda: GluonBlock(net_of(), sgd(lr_scheduler=Odd())),
            "a set cannot be a part of a state.*: take another scheduler",
        ),
    }


@pytest.mark.parametrize(("make", "said"), refused().values(), ids=refused())
def test_what_members_cannot_keep_equal_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(LearningError, match=said):
        make()


@pytest.mark.parametrize("name", ["AdaDelta", "AdaGrad", "Ftrl", "RMSProp"])
def test_mxnet_cannot_make_a_step_of_these_in_float64(name: str) -> None:
    """Once it can, they need not be refused."""
    weight = mxnet.nd.ones((2,), dtype="float64")

    with pytest.raises(mxnet.MXNetError):
        mxnet.optimizer.get_updater(mxnet.optimizer.create(name))(0, weight, weight)
        mxnet.nd.waitall()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_run_finds_what_a_trainer_finds_however_its_batches_are_cut(dtype: str) -> None:
    found = []
    for micro_batch in (128, 7):
        net = net_of(dtype)
        learner = GluonBlock(net, optimizer_of("Adam"))
        with Run(None, None, data_of(dtype), batch=25, epochs=3, learner=learner, micro_batch=micro_batch) as run:
            for x, y in run:
                run.step(square(net, x, y))
        found.append(net)

    assert run.steps == 9
    assert differ(found[0], net_of(dtype)) > 0.01
    assert differ(*found) < (1e-5 if dtype == "float32" else 1e-12)


def test_who_has_no_mxnet_can_train_with_pytorch() -> None:
    program = "import sys, nodewise.learning as it; assert 'mxnet' not in sys.modules; print(it.GluonBlock.__name__)"
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout == "GluonBlock\n"


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSProp"])
def test_the_mean_of_two_equal_members_is_either_of_them_and_half_of_one_is_half(name: str) -> None:
    net, other = net_of(), net_of()
    learner, second = GluonBlock(net, optimizer_of(name)), GluonBlock(other, optimizer_of(name))
    taught(net, learner, 3)
    taught(other, second, 3)
    parameters, others = learner.values()
    assert len(parameters) == learner.size and others.abs().sum() > 0

    learner.set_values(*((one + two) / 2 for one, two in zip(learner.values(), second.values(), strict=True)))
    taught(net, learner, 2)
    taught(other, second, 2)
    assert differ(net, other) == 0.0

    second.set_values(parameters / 2, others / 2)
    assert all(torch.equal(one, two / 2) for one, two in zip(second.values(), (parameters, others), strict=True))
