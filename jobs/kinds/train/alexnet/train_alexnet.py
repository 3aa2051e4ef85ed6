"""Teaches AlexNet the images of a folder in HDFS, as one member of a run: `nodewise job train --members` submits it."""

from __future__ import annotations

import argparse
import sys

try:
    import torch  # noqa: F401  first: PyTorch cannot multiply matrices when MXNet was imported before it
except ModuleNotFoundError:
    sys.exit("this node's Python has no PyTorch, which members add up their gradients by: see docs/training.md")

import mxnet

from jobs.errors import JobError
from jobs.kinds.train.alexnet.images_to_learn import ImagesToLearn, Varied
from jobs.kinds.train.alexnet.learner import CROP, new_learner, to_arrays
from jobs.training.train import BATCH, STEPS
from learning.errors import LearningError
from learning.member.run import Run

CHECKPOINT_SECONDS = 600.0
"""A state of AlexNet under Adam has 690 MB, and its training takes minutes."""


def main(arguments: list[str]) -> None:
    """Until all steps are done; whoever has submitted the run reads the network from its last checkpoint."""
    asked = _parser().parse_args(arguments)
    images = ImagesToLearn(asked.folder, asked.labels, asked.seed, CROP)
    net, learner = new_learner(len(images.classes), asked.seed, asked.steps)
    loss_of = mxnet.gluon.loss.SoftmaxCrossEntropyLoss()
    data = Varied(images, asked.steps * BATCH, asked.seed)
    with Run(
        None,
        None,
        data,
        batch=BATCH,
        epochs=1,
        seed=asked.seed,
        learner=learner,
        checkpoint_seconds=CHECKPOINT_SECONDS,
    ) as run:
        for part in run:
            pixels, numbers = to_arrays(part)
            run.step(lambda: loss_of(net(pixels), numbers))  # noqa: B023 called at once


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="train_alexnet.py")
    parser.add_argument("folder")
    parser.add_argument("--labels")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--steps", type=int, default=STEPS)
    return parser


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (JobError, LearningError) as error:
        sys.exit(str(error))
