"""AlexNet with its optimizer, as members train it and as its state is read after that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mxnet

from jobs.engines.network import USUAL, network_named
from jobs.training.train import LAST_RATE, RATE, begin
from learning.learners.gluon_block import GluonBlock

if TYPE_CHECKING:
    import torch  # by whoever uses this, and before MXNet

NETWORK = network_named(USUAL)
CROP = (NETWORK.image.height, NETWORK.image.width)


def new_learner(classes: int, seed: int, steps: int) -> tuple[Any, GluonBlock]:
    """A Gluon network that has learned nothing, and its learner for so many steps."""
    net = begin(NETWORK, classes, seed)
    net(mxnet.nd.zeros((1, *NETWORK.image.shape)))  # now its shapes are known
    rates = mxnet.lr_scheduler.PolyScheduler(steps, base_lr=RATE, pwr=1, final_lr=RATE * LAST_RATE)
    return net, GluonBlock(net, mxnet.optimizer.Adam(learning_rate=RATE, lr_scheduler=rates))


def to_arrays(batch: Sequence[torch.Tensor]) -> list[Any]:
    """Arrays of MXNet. They are copied, as those of DLPack are refused where a batch is one sample."""
    return [mxnet.nd.from_numpy(one.numpy(), zero_copy=False) for one in batch]
