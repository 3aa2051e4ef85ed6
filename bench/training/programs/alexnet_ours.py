"""`alexnet_ours.py SETTINGS`: AlexNet of MXNet in the loop of the manual, as a member of a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch  # first: it cannot multiply matrices when MXNet was imported before it
from mxnet import gluon

from bench.training.programs.alexnet import CLASSES, accuracy, load
from bench.training.programs.ours import MEMBER, teach
from bench.training.settings import Settings
from jobs.kinds.train.alexnet.learner import new_learner, to_arrays
from locality.training.sample_order import SampleOrder
from nodewise.learning import Run

CHECKPOINT_SECONDS = 600.0
"""A state has 690 MB."""


def main(settings: Settings) -> None:
    """Train, and write the accuracy at the end."""
    node = int(Path(os.environ[MEMBER]).stem.rpartition("-")[2])
    images, labels = map(torch.from_numpy, load(settings, "train"))
    data = images, labels, torch.arange(len(images))
    steps = settings.epochs * SampleOrder(len(images), settings.batch, settings.seed).steps
    net, learner = new_learner(CLASSES, settings.seed, steps)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    run = Run(
        None,
        None,
        data,
        batch=settings.batch,
        epochs=settings.epochs,
        seed=settings.seed,
        learner=learner,
        checkpoint_seconds=CHECKPOINT_SECONDS,
    )

    def loss(*part: torch.Tensor) -> Any:
        pixels, classes = to_arrays(part)
        return loss_of(net(pixels), classes)

    teach(settings, node, run, loss, lambda: accuracy(net, settings))


if __name__ == "__main__":
    main(Settings.read(sys.argv[1]))
