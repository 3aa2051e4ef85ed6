"""`mxnet_sync.py SETTINGS`: MXNet's own `dist_sync`, with equal shares; scheduler and server are this program, too."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn

from bench.training.programs.network import RATE, load
from bench.training.programs.step_log import StepLog
from bench.training.settings import Settings, split_evenly
from locality.training.sample_order import SampleOrder


def network() -> nn.HybridSequential:
    """That of `network.py`; only the normalisation has a factor for each group here, in place of one a channel."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(32, 3, padding=1, activation="relu"),
        nn.Conv2D(64, 3, padding=1, activation="relu"),
        nn.GroupNorm(num_groups=8),
        nn.MaxPool2D(2),
        nn.Flatten(),
        nn.Dense(256, activation="relu"),
        nn.Dense(10),
    )
    return net


def main(settings: Settings) -> None:
    """Teach it the digits."""
    images, labels = (mx.nd.array(one.numpy()) for one in load(settings, "train"))
    net = network()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    train(settings, net, images, labels, RATE)


def train(settings: Settings, net: Any, images: Any, labels: Any, rate: float) -> None:
    """With Adam, until it is ended, or all epochs are done."""
    store = mx.kv.create("dist_sync")
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": rate}, kvstore=store)
    measure = gluon.loss.SoftmaxCrossEntropyLoss()
    rank = store.rank
    order = SampleOrder(len(images), settings.batch, settings.seed)
    settings.enter(rank)
    log = StepLog(settings, rank)
    log.begin(0)
    for steps in range(settings.epochs * order.steps):
        numbers = order.of_step(*order.locate(steps)).tolist()
        shares = split_evenly(len(numbers), store.num_workers)
        own = numbers[sum(shares[:rank]) :][: shares[rank]]
        log.compute(steps, 0, own)
        chosen = mx.nd.array(own, dtype="int32")
        with autograd.record():
            loss = measure(net(images.take(chosen)), labels.take(chosen))
        loss.backward()
        trainer.step(len(numbers))
        mx.nd.waitall()
        log.reach(steps + 1)


def take_role(work: Callable[[Settings], None]) -> None:
    """Work, or serve until all workers have ended."""
    if os.environ["DMLC_ROLE"] == "worker":
        work(Settings.read(sys.argv[1]))
    else:
        mx.kv.create("dist_sync")


if __name__ == "__main__":
    take_role(main)
