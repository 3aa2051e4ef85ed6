"""AlexNet of Gluon's model zoo on MXNet, hybridized with static memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SEED = 2012
"""Of the weights nobody gave: the same on every node, so that every node sees the same classes."""


class MxnetAlexnet:
    """1000 classes; `load` takes Gluon parameters of `gluon.model_zoo.vision.alexnet`."""

    def load(self, weights: Path | None, batch: int) -> None:
        """Build the network, fill it, and run it once so that the first real batch is not slower."""
        import mxnet as mx  # the framework belongs to the worker's environment alone
        from mxnet.gluon.model_zoo import vision

        self._mx: Any = mx
        self._net = vision.alexnet()
        if weights is None:
            mx.random.seed(SEED)
            self._net.initialize(mx.init.Xavier())
        else:
            try:
                self._net.load_parameters(str(weights))
            except Exception as error:
                raise ValueError(f"{weights.name} does not fit AlexNet: {str(error).splitlines()[0]}") from error
        self._net.hybridize(static_alloc=True, static_shape=True)
        self.infer(np.zeros((batch, 3, 224, 224), dtype=np.float32))

    def infer(self, pictures: np.ndarray) -> np.ndarray:
        """Softmax of the network's output.

        A short last batch makes MXNet plan its memory anew, which costs less than filling the batch up would.
        """
        probabilities: np.ndarray = self._mx.nd.softmax(self._net(self._mx.nd.array(pictures))).asnumpy()
        return probabilities
