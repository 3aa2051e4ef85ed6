"""ONNX graphs of networks that are written down as layers, and sessions that run a graph on a single core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jobs.engines.layers import Convolution, Dense, Flatten, LayeredNetwork, Pooling

OPSET = 17
FORMAT = 8  # of the file, as old as the opset allows
INPUT, OUTPUT = "images", "probabilities"


def model(network: LayeredNetwork, values: Mapping[str, np.ndarray], inside: bool = True) -> Any:
    """The network with these parameters, which stand in the model or (not `inside`) are handed to the session apart.

    It takes float32 images and gives probabilities (n, classes).
    """
    from onnx import TensorProto, helper, numpy_helper

    classes = len(values["output.bias"])
    tensor = numpy_helper.from_array if inside else _elsewhere
    graph = helper.make_graph(
        list(_nodes(network)),
        network.name,
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", *network.image.shape])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["n", classes])],
        [tensor(value, name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=FORMAT)


def session(model: bytes | Path, values: Mapping[str, np.ndarray] | None = None) -> Any:
    """One that computes in the thread which calls it: it has no threads of its own, so its process may fork.

    `values` are those parameters that do not stand in the model; they are copied.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, and said once by whoever catches them
    if values:
        handed = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in values.values()]
        options.add_external_initializers(list(values), handed)
    source = str(model) if isinstance(model, Path) else model
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def session_of(network: LayeredNetwork, values: Mapping[str, np.ndarray]) -> Any:
    """A session of the network with these parameters, without writing 244 MB into a message and reading them again."""
    return session(model(network, values, inside=False).SerializeToString(), values)


def _elsewhere(value: np.ndarray, name: str) -> Any:
    from onnx import TensorProto

    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=value.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="memory")
    return tensor


def _nodes(network: LayeredNetwork) -> Iterator[Any]:
    from onnx import helper

    last = INPUT
    for number, layer in enumerate(network.layers):
        name, before = f"features.{number}", last
        last = f"{name}.out"
        if isinstance(layer, Convolution):
            parts = {"strides": [layer.stride] * 2, "pads": [layer.padding] * 4}
            yield helper.make_node("Conv", [before, f"{name}.weight", f"{name}.bias"], [f"{name}.sum"], name, **parts)
            yield helper.make_node("Relu", [f"{name}.sum"], [last], f"{name}.relu")
        elif isinstance(layer, Pooling):
            sides = {"kernel_shape": [layer.window] * 2, "strides": [layer.stride] * 2}
            yield helper.make_node("MaxPool", [before], [last], name, **sides)
        elif isinstance(layer, Flatten):
            yield helper.make_node("Flatten", [before], [last], name)
        elif isinstance(layer, Dense):
            parameters = [before, f"{name}.weight", f"{name}.bias"]
            yield helper.make_node("Gemm", parameters, [f"{name}.sum"], name, transB=1)
            yield helper.make_node("Relu", [f"{name}.sum"], [last], f"{name}.relu")
        else:  # dropout is for training only
            last = before
    yield helper.make_node("Gemm", [last, "output.weight", "output.bias"], ["classes"], "output", transB=1)
    yield helper.make_node("Softmax", ["classes"], [OUTPUT], "softmax", axis=-1)
