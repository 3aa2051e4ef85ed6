"""AlexNet of Gluon's model zoo on MXNet, hybridized with static memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jobs.engines import alexnet


class MxnetAlexnet:
    """As many classes as the parameters have; `load` takes those of `gluon.model_zoo.vision.alexnet`."""

    def load(self, weights: Path | None, batch: int) -> None:  # noqa: ARG002  as every engine has it
        """Build the network, fill it, and run it once so that the first real batch is not slower.

        One picture is enough for that: a full batch would take half a second more of each container's start.
        """
        values = alexnet.parameters(weights)
        import mxnet as mx  # the framework belongs to the worker's environment alone
        from mxnet.gluon.model_zoo import vision

        self._mx: Any = mx
        self._net = vision.alexnet(classes=len(values["output.bias"]))
        self._net.initialize()
        for name, value in values.items():
            _parameter(self._net, name).set_data(mx.nd.array(value))
        self._net.hybridize(static_alloc=True, static_shape=True)
        self.infer(np.zeros((1, 3, 224, 224), dtype=np.float32))

    def infer(self, pictures: np.ndarray) -> np.ndarray:
        """Softmax of the network's output.

        A short last batch makes MXNet plan its memory anew, which costs less than filling the batch up would.
        """
        probabilities: np.ndarray = self._mx.nd.softmax(self._net(self._mx.nd.array(pictures))).asnumpy()
        return probabilities


def _parameter(net: Any, name: str) -> Any:
    """What Gluon calls `features.0.weight` in its files."""
    found = net
    for part in name.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    return found
