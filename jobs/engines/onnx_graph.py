"""AlexNet as an ONNX graph, and the session that runs one on a single core."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

OPSET = 17
FORMAT = 8  # of the file, as old as the opset allows
INPUT, OUTPUT = "pictures", "probabilities"
CONVOLUTIONS = (
    ("features.0", 4, 2),
    ("features.2", 1, 2),
    ("features.4", 1, 1),
    ("features.5", 1, 1),
    ("features.6", 1, 1),
)
"""Name, stride and padding of each."""
POOLED = frozenset({"features.0", "features.2", "features.6"})
DENSE = ("features.9", "features.11")


def alexnet(values: Mapping[str, np.ndarray], inside: bool = True) -> Any:
    """The network with these parameters, which stand in the model or (not `inside`) are handed to the session apart.

    It takes float32 pictures (n, 3, 224, 224) and gives probabilities (n, classes).
    """
    from onnx import TensorProto, helper, numpy_helper

    classes = len(values["output.bias"])
    tensor = numpy_helper.from_array if inside else _elsewhere
    graph = helper.make_graph(
        list(_nodes()),
        "alexnet",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", 3, 224, 224])],
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
    options.log_severity_level = 3
    if values:
        handed = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in values.values()]
        options.add_external_initializers(list(values), handed)
    source = str(model) if isinstance(model, Path) else model
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def session_of(values: Mapping[str, np.ndarray]) -> Any:
    """A session of the network with these parameters, without writing 244 MB into a message and reading them again."""
    return session(alexnet(values, inside=False).SerializeToString(), values)


def run(session: Any, pictures: np.ndarray) -> np.ndarray:
    """Probabilities (n, classes)."""
    probabilities: np.ndarray = session.run([OUTPUT], {INPUT: pictures})[0]
    return probabilities


def _elsewhere(value: np.ndarray, name: str) -> Any:
    from onnx import TensorProto

    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=value.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="memory")
    return tensor


def _nodes() -> Any:
    from onnx import helper

    last = INPUT
    for name, stride, padding in CONVOLUTIONS:
        parameters = [f"{name}.weight", f"{name}.bias"]
        yield helper.make_node(
            "Conv", [last, *parameters], [f"{name}.sum"], name, strides=[stride] * 2, pads=[padding] * 4
        )
        yield helper.make_node("Relu", [f"{name}.sum"], [f"{name}.out"], f"{name}.relu")
        last = f"{name}.out"
        if name in POOLED:
            yield helper.make_node(
                "MaxPool", [last], [f"{name}.most"], f"{name}.pool", kernel_shape=[3, 3], strides=[2, 2]
            )
            last = f"{name}.most"
    yield helper.make_node("Flatten", [last], ["flat"], "features.8")
    last = "flat"
    for name in DENSE:
        yield helper.make_node("Gemm", [last, f"{name}.weight", f"{name}.bias"], [f"{name}.sum"], name, transB=1)
        yield helper.make_node("Relu", [f"{name}.sum"], [f"{name}.out"], f"{name}.relu")
        last = f"{name}.out"
    yield helper.make_node("Gemm", [last, "output.weight", "output.bias"], ["classes"], "output", transB=1)
    yield helper.make_node("Softmax", ["classes"], [OUTPUT], "softmax", axis=-1)
