"""Gluon networks of those that are written down as layers, to be trained or to infer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jobs.engines.layers import Convolution, Dense, Dropout, Flatten, Layer, LayeredNetwork, Pooling


def net(network: LayeredNetwork, classes: int) -> Any:
    """A new block, not initialized; it gives one number per class, without softmax."""
    from mxnet import gluon  # the framework belongs to the worker's environment alone

    class Net(gluon.HybridBlock):  # type: ignore[misc]
        """`features`, then `output`, as the networks of Gluon's model zoo have it."""

        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.features = gluon.nn.HybridSequential()
                for layer in network.layers:
                    self.features.add(_block(gluon.nn, layer))
                self.output = gluon.nn.Dense(classes)

        def hybrid_forward(self, _symbols: Any, images: Any) -> Any:
            return self.output(self.features(images))

    return Net()


def fill(block: Any, values: Mapping[str, np.ndarray]) -> None:
    """Initialize a block that will only infer with these parameters, by their names in a file."""
    import mxnet as mx

    keep_no_gradients(block)
    block.initialize()
    for name, value in values.items():
        _parameter(block, name).set_data(mx.nd.array(value))


def keep_no_gradients(block: Any) -> None:
    """Free the gradients of a block that does not learn, which take as much memory as its parameters."""
    block.collect_params().setattr("grad_req", "null")


def _block(nn: Any, layer: Layer) -> Any:
    if isinstance(layer, Convolution):
        return nn.Conv2D(layer.channels, layer.window, layer.stride, layer.padding, activation="relu")
    if isinstance(layer, Pooling):
        return nn.MaxPool2D(layer.window, layer.stride)
    if isinstance(layer, Flatten):
        return nn.Flatten()
    if isinstance(layer, Dense):
        return nn.Dense(layer.units, activation="relu")
    if isinstance(layer, Dropout):
        return nn.Dropout(layer.rate)
    raise AssertionError(f"a layer of another kind: {layer}")


def _parameter(block: Any, name: str) -> Any:
    """What Gluon calls `features.0.weight` in its files."""
    found = block
    for part in name.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    return found
