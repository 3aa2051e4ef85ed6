"""A network that is there in a tenth of a second, where AlexNet takes two, for jobs whose rows no test reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

from jobs.application.package import WORKER_PYTHON

PROGRAM = """
import sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

CLASSES = 1000
draw = np.random.default_rng(1).normal
values = {"window": draw(size=(4, 3, 32, 32)), "weight": draw(size=(4, CLASSES))}
nodes = [
    helper.make_node("Conv", ["images", "window"], ["patches"], strides=[32, 32]),
    helper.make_node("GlobalAveragePool", ["patches"], ["means"]),
    helper.make_node("Flatten", ["means"], ["features"]),
    helper.make_node("MatMul", ["features", "weight"], ["sums"]),
    helper.make_node("Softmax", ["sums"], ["classes"]),
]
images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 224, 224])
classes = helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["n", CLASSES])
parameters = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in values.items()]
graph = helper.make_graph(nodes, "small", [images], [classes], parameters)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
"""


def small_network(folder: Path) -> tuple[str, ...]:
    """The words that have a job use it; its file is made in the folder when it is first asked for."""
    file = folder / "small.onnx"
    if not file.exists():
        subprocess.run([WORKER_PYTHON, "-c", PROGRAM, file], check=True, timeout=300)
    return "--engine", "onnx", "--model", str(file)
