"""MXNet: a network by name, or any Gluon symbol with its parameters; hybridized with static memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from jobs.engines import gluon_file, gluon_net
from jobs.engines.description import CHANNELS_FIRST, Description, ImageInput
from jobs.engines.layers import LayeredNetwork
from jobs.engines.network import Network, network_named
from jobs.engines.outputs import describe
from jobs.engines.parameters import parameters
from jobs.engines.preparation_file import PreparationFile
from jobs.images.tensors import ImageArrays, OutputTensor

SOFTMAX = frozenset({"softmax", "SoftmaxOutput", "SoftmaxActivation"})


class MxnetEngine:
    """One Gluon block."""

    def load(self, network: Network, given: PreparationFile, batch: int) -> Description:  # noqa: ARG002  as all have it
        """Build the network, fill it, and run it so that the first real batch is not slower.

        One image is enough for a network by name: a full batch would take half a second more of each container's start.
        """
        if network.graph is None:
            return self._load_named(network_named(network.model), network.weights)
        try:
            return self._load_file(network.graph, network.weights, given)
        except ValueError as error:
            raise ValueError(f"{network.graph.name} does not fit: {error}") from error

    def infer(self, images: np.ndarray) -> list[ImageArrays]:
        """What the block gives.

        A short last batch makes MXNet plan its memory anew, which costs less than filling the batch up would.
        """
        results = self._net(self._mx.nd.array(images, dtype=images.dtype))
        if not isinstance(results, list | tuple):
            results = [results]
        if self._softmax:
            results = [self._mx.nd.softmax(one) for one in results]
        return [one.asnumpy() for one in results]

    def _load_named(self, layers: LayeredNetwork, weights: Path | None) -> Description:
        values = parameters(layers, weights)
        import mxnet as mx  # the framework belongs to the worker's environment alone

        self._mx: Any = mx
        self._softmax = True
        classes = len(values["output.bias"])
        self._net = gluon_net.net(layers, classes)
        gluon_net.fill(self._net, values)
        self._net.hybridize(static_alloc=True, static_shape=True)
        self.infer(np.zeros((1, *layers.image.shape), dtype=np.float32))
        output = OutputTensor("probabilities", "float32", (classes,))
        return Description(layers.image, (output,), is_probability=True)

    def _load_file(self, graph: Path, weights: Path | None, given: PreparationFile) -> Description:
        symbol, name = _symbol(graph, weights)
        import mxnet as mx

        self._mx = mx
        self._softmax = False
        image = _image(symbol, name, given)
        try:
            self._net = mx.gluon.SymbolBlock.imports(str(graph), [name], str(weights))
            gluon_net.keep_no_gradients(self._net)
            self._net.hybridize(static_alloc=True, static_shape=True)
            results = self.infer(np.zeros((2, *image.shape), dtype=image.dtype))
        except Exception as error:  # MXNet says everything by one class, and some by others
            raise ValueError(f"MXNet does not take it: {str(error).strip().splitlines()[-1]}") from error
        outputs = mx.sym.load(str(graph)).list_outputs()
        if any(len(rows) != 2 for rows in results):
            raise ValueError("an output does not have one row per image")
        is_probability = symbol["nodes"][symbol["heads"][0][0]]["op"] in SOFTMAX
        return Description(image, describe(outputs, results), is_probability)


def _symbol(graph: Path, weights: Path | None) -> tuple[dict[str, Any], str]:
    """The graph, and the name of its one input that has no parameters; ValueError when it does not have one."""
    if weights is None:
        raise ValueError("it has no parameters")
    try:
        symbol: dict[str, Any] = json.loads(graph.read_text())
        variables = [node["name"] for node in symbol["nodes"] if node["op"] == "null"]
        symbol["heads"][0][0]
    except (OSError, ValueError, LookupError, TypeError):
        raise ValueError("it is not a Gluon symbol: write it with net.export") from None
    try:
        known = {name.partition(":")[2] or name for name in gluon_file.read(weights)}
    except ValueError as error:
        raise ValueError(f"{weights.name} holds no parameters: {error}") from None
    inputs = [name for name in variables if name not in known]
    if len(inputs) != 1:
        said = ", ".join(inputs) or "none"
        raise ValueError(f"a model takes one input, the images; of this one {len(inputs)} have no parameters: {said}")
    return symbol, inputs[0]


def _image(symbol: dict[str, Any], name: str, given: PreparationFile) -> ImageInput:
    """As the preparation says, or as the symbol does, which most do not."""
    if given.crop is None:
        raise ValueError(
            "a Gluon symbol does not tell how large its images are: write crop = [height, width] into the "
            "preparation file, NAME.toml beside the model"
        )
    channels = 1 if given.channels == "grey" else 3
    attributes: dict[str, str] = next((node.get("attrs", {}) for node in symbol["nodes"] if node["name"] == name), {})
    dtype = "uint8" if attributes.get("__dtype__") == "3" else "float32"
    return ImageInput(*given.crop, channels, given.layout or CHANNELS_FIRST, dtype)
