"""`alexnet_sync.py SETTINGS`: AlexNet with MXNet's own `dist_sync` and equal shares."""

from __future__ import annotations

import mxnet
import torch  # noqa: F401 before MXNet works with matrices

from bench.training.programs.alexnet import CLASSES, load
from bench.training.programs.mxnet_sync import take_role, train
from bench.training.settings import Settings
from jobs.engines.network import USUAL, network_named
from jobs.training.train import RATE, begin


def main(settings: Settings) -> None:
    """Teach it the pictures."""
    images, labels = map(mxnet.nd.array, load(settings, "train"))
    train(settings, begin(network_named(USUAL), CLASSES, settings.seed), images, labels, RATE)


if __name__ == "__main__":
    take_role(main)
