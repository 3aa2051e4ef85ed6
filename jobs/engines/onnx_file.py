"""ONNX files as other programs write them: which images they take, and how many at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.engines.description import CHANNELS_FIRST, CHANNELS_LAST, ImageInput
from jobs.engines.preparation_file import PreparationFile

DTYPES = ("float32", "float16", "float64", "uint8")
_SAME_NUMBERS = frozenset({"Reshape", "Flatten", "Squeeze", "Identity", "Cast", "Dropout"})
"""Operators behind a softmax that leave probabilities what they are."""


@dataclass(frozen=True)
class OnnxInput:
    """The one input of a model that is not a weight; `batch` is how many images it takes, None for any number."""

    name: str
    image: ImageInput
    batch: int | None


def read(file: Path) -> Any:
    """The model; ValueError when the file does not hold one, or keeps its weights elsewhere."""
    import onnx

    try:
        model = onnx.load(file, load_external_data=False)
    except OSError as error:
        raise ValueError(f"{file.name} cannot be read: {error.strerror}") from None
    except Exception as error:  # protobuf has a class of its own for it, which its versions keep in different places
        raise ValueError(f"{file.name} is not an ONNX model") from error
    if not model.graph.node:
        raise ValueError(f"{file.name} is not an ONNX model")
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise ValueError(f"{file.name} keeps weights in other files: save all in one, onnx.save(model, file)")
    return model


def metadata(model: Any) -> Mapping[str, str]:
    """What a model says of itself."""
    return {one.key: one.value for one in model.metadata_props}


def image_input(model: Any, given: PreparationFile) -> OnnxInput:
    """The images that a model takes; ValueError says why it takes none, or what the preparation has to say."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [one for one in model.graph.input if one.name not in weights]
    if len(inputs) != 1:
        names = ", ".join(one.name for one in inputs) or "none"
        raise ValueError(f"a model takes one input, the images, and this one takes {len(inputs)}: {names}")
    (only,) = inputs
    dims = [one.dim_value or None for one in only.type.tensor_type.shape.dim]
    if len(dims) != 4:
        raise ValueError(f"its input {only.name} has {len(dims)} dimensions, and images have 4: see NCHW and NHWC")
    batch, *rest = dims
    return OnnxInput(only.name, _image(only, rest, given), batch)


def _image(only: Any, dims: list[int | None], given: PreparationFile) -> ImageInput:
    layout = given.layout or _layout(only.name, dims)
    channels, height, width = dims if layout == CHANNELS_FIRST else (dims[2], dims[0], dims[1])
    if height is None or width is None:
        if given.crop is None:
            raise ValueError(
                f"its input {only.name} leaves height or width open: write crop = [height, width] into the "
                "preparation file, NAME.toml beside the model"
            )
        height, width = height or given.crop[0], width or given.crop[1]
    channels = channels or (1 if given.channels == "grey" else 3)
    if channels not in (1, 3):
        raise ValueError(f"its input {only.name} has {channels} channels, and images have 1 or 3")
    return ImageInput(height, width, channels, layout, _dtype(only))


def _layout(name: str, dims: list[int | None]) -> str:
    if dims[0] in (1, 3):
        return CHANNELS_FIRST
    if dims[2] in (1, 3):
        return CHANNELS_LAST
    if dims[0] is None and dims[2] is None:
        raise ValueError(
            f"its input {name} does not tell where its channels are: write layout = "
            f'"{CHANNELS_FIRST}" or "{CHANNELS_LAST}" into the preparation file, NAME.toml beside the model'
        )
    raise ValueError(
        f"its input {name} has the shape {dims} after the batch; no dimension is 1 or 3, the number of channels"
    )


def _dtype(only: Any) -> str:
    import onnx

    kind = only.type.tensor_type.elem_type
    name = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)).name if kind else "nothing"
    if name not in DTYPES:
        raise ValueError(f"its input {only.name} takes {name}; supported types are {', '.join(DTYPES)}")
    return name


def gives_probability(model: Any) -> bool:
    """Whether the first output comes out of a softmax."""
    makers = {name: node for node in model.graph.node for name in node.output}
    node = makers.get(model.graph.output[0].name)
    while node is not None and node.op_type in _SAME_NUMBERS:
        node = makers.get(node.input[0])
    return node is not None and node.op_type == "Softmax"


def free_batch(model: Any, batch: int) -> Any:
    """A copy that takes any number of images; whether it gives the same has to be tried."""
    import onnx

    free = onnx.ModelProto()
    free.CopyFrom(model)
    weights = {tensor.name: tensor for tensor in free.graph.initializer}
    for value in [one for one in free.graph.input if one.name not in weights] + list(free.graph.output):
        dims = value.type.tensor_type.shape.dim
        if len(dims) and dims[0].dim_value == batch:
            dims[0].dim_param = "n"
    del free.graph.value_info[:]
    for tensor in _reshapes(free, weights):
        shape = onnx.numpy_helper.to_array(tensor).copy()
        if shape.ndim == 1 and len(shape) and shape[0] == batch:
            shape[0] = 0  # as many as come in
            tensor.CopyFrom(onnx.numpy_helper.from_array(shape, tensor.name))
    return free


def _reshapes(model: Any, weights: Mapping[str, Any]) -> list[Any]:
    """The constants that say to which shape something is brought."""
    names = {node.input[1] for node in model.graph.node if node.op_type == "Reshape" and len(node.input) > 1}
    constants = {
        node.output[0]: one.t
        for node in model.graph.node
        if node.op_type == "Constant"
        for one in node.attribute
        if one.name == "value"
    }
    known = dict(weights) | constants
    return [known[name] for name in sorted(names & known.keys())]
