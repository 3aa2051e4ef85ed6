"""A network that is written down as layers, from nothing to weights that mean something, in minutes on two cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.engines import gluon_net
from jobs.engines.layers import LayeredNetwork
from jobs.engines.preparation_file import PreparationFile
from jobs.images.preparation import Preparation
from jobs.training.labelled_images import Labelled, batches, vary

BATCH = 8
"""Small, because it is the number of steps that counts and not how many images each sees."""
STEPS = 240
RATE = 1e-4
"""Of Adam; AlexNet has nothing that normalises, and ten times as much lets it diverge."""
LAST_RATE = 0.1
"""Of RATE, in the last step; in between the rate falls evenly."""

OnStep = Callable[[int, int, float], None]  # step, of how many, loss


@dataclass(frozen=True)
class Trained:
    """A Gluon network, and what it makes of images that it has not learned from: (right, of) by class name."""

    net: Any
    by_class: dict[str, tuple[int, int]]


def describe(
    weights: Path, by_class: Mapping[str, tuple[int, int]], learned: int, classes: Sequence[str]
) -> dict[str, Any]:
    """What people are told of weights: how often they are right, of what they have learned from how many images."""
    right, of = (sum(counts) for counts in zip(*by_class.values(), strict=True))
    return {
        "weights": str(weights),
        "accuracy": right / of,
        "held_out": of,
        "learned": learned,
        "by_class": by_class,
        "classes": classes,
    }


def train(
    network: LayeredNetwork, learned: Labelled, held: Labelled, seed: int, steps: int, on_step: OnStep
) -> Trained:
    """Teach a network of these layers; the same images, seed and number of threads give the same weights."""
    import mxnet as mx

    net = begin(network, len(learned.classes), seed)
    how = preparation_of(network)
    _learn(mx, net, _batches(learned, how, seed, steps), steps, on_step)
    return Trained(net, judge(net, batches(held.files, BATCH, how), held.numbers, held.classes))


def begin(network: LayeredNetwork, classes: int, seed: int) -> Any:
    """A Gluon network of these layers that has learned nothing yet; its shapes are known once it has seen a batch."""
    import mxnet as mx

    mx.random.seed(seed)
    net = gluon_net.net(network, classes)
    net.initialize(mx.init.MSRAPrelu(slope=0))
    net.hybridize(static_alloc=True, static_shape=True)
    return net


def judge(
    net: Any, held: Iterable[np.ndarray], numbers: np.ndarray, classes: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """What it makes of batches of images with these class numbers: (right, of) by class name."""
    import mxnet as mx

    seen = [net(mx.nd.array(pixels)).asnumpy().argmax(axis=1) for pixels in held]
    right = np.concatenate(seen) == numbers
    return {
        classes[number]: (int(right[numbers == number].sum()), int((numbers == number).sum()))
        for number in np.unique(numbers)
    }


def preparation_of(network: LayeredNetwork) -> Preparation:
    """Of its images, as everywhere where no file says otherwise."""
    return PreparationFile().preparation(network.image)


def _learn(mx: Any, net: Any, shown: Iterable[tuple[np.ndarray, np.ndarray]], steps: int, on_step: OnStep) -> None:
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": RATE})
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for step, (pixels, numbers) in enumerate(shown, start=1):
        trainer.set_learning_rate(RATE * (1 - (1 - LAST_RATE) * step / steps))
        with mx.autograd.record():
            loss = loss_of(net(mx.nd.array(pixels)), mx.nd.array(numbers))
        loss.backward()
        trainer.step(len(numbers))
        on_step(step, steps, float(loss.mean().asscalar()))


def _batches(learned: Labelled, how: Preparation, seed: int, steps: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches in an order that chance chooses, each image once before any is shown again."""
    chance = np.random.default_rng(seed)
    waiting: list[int] = []
    for _ in range(steps):
        while len(waiting) < BATCH:
            waiting += chance.permutation(len(learned.files)).tolist()
        chosen, waiting = waiting[:BATCH], waiting[BATCH:]
        yield np.stack([vary(learned.files[at], how, chance) for at in chosen]), learned.numbers[chosen]
