"""Classifiers in whole numbers of 8 bits, if they pass the gate that lets them be used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np

from jobs.engines import onnx_file
from jobs.engines.gate import LEAST_AGREEMENT, LEAST_IMAGES, Gate
from jobs.engines.onnx_engine import OnnxEngine
from jobs.engines.outputs import count_classes
from jobs.engines.preparation_file import PreparationFile
from jobs.errors import JobError
from jobs.training.labelled_images import batches
from jobs.training.writing import open_part

CALIBRATION = 64
"""Images that tell how large the numbers between the layers become."""
MOST_IMAGES = 1000
"""That the gate looks at."""
BATCH = 8
OPSET, LEAST_OPSET = 17, 13
WEIGHTED = frozenset({"Conv", "Gemm", "MatMul"})


@dataclass(frozen=True)
class Quantized:
    """The model's file, and how it passed."""

    file: Path
    gate: Gate


def quantize(
    model: Any, given: PreparationFile, images: Sequence[Path], file: Path, on_step: Callable[[int, int], None]
) -> Quantized:
    """Write an ONNX classifier in 8 bits; JobError, and no file, when the model is not one or does not pass.

    Calibrated with the first images, judged by others: by all the rest, or as many as the gate looks at.
    """
    check_count(len(images))
    calibration, judged = list(images[:CALIBRATION]), list(images[CALIBRATION : CALIBRATION + MOST_IMAGES])
    with open_part(file) as part:
        exact = _Classifier(model, given)
        quick = _Classifier(_in_8_bits(exact, calibration), given)
        gate = Gate(_agreement(exact, quick, judged, on_step), len(judged))
        if not gate.has_passed:
            raise JobError(
                f"the 8-bit network names the same class as the float32 one for {gate.agreement:.1%} of "
                f"{gate.images} images, and {LEAST_AGREEMENT:.0%} are needed",
                remedy="train it longer, or use it in float32",
            )
        gate.write_into(quick.model)
        part.write_bytes(quick.model.SerializeToString())
    return Quantized(file, gate)


class _Classifier:
    """An ONNX model that runs, and how its images are prepared; its batch is changed if that can be done."""

    def __init__(self, model: Any, given: PreparationFile) -> None:
        self._engine = OnnxEngine()
        self.described = self._engine.load_model(model, given)
        self._how = given.preparation(self.described.image)
        if count_classes(self.described, given) is None:
            raise JobError(
                "a model that gives tensors has no best class, which the gate compares", remedy="use a classifier"
            )
        found = onnx_file.image_input(model, given)
        self.name = found.name
        self.model = onnx_file.free_batch(model, found.batch) if found.batch and self._any else model
        self._size = BATCH if self._any else found.batch or 1

    @property
    def _any(self) -> bool:
        return self._engine.takes_any_number

    def batches(self, files: Sequence[Path]) -> Iterator[np.ndarray]:
        """Images of these files, as it takes them."""
        return batches(files, self._size, self._how, self.described.image)

    def best(self, images: np.ndarray) -> np.ndarray:
        """The number of the best class of each image."""
        (rows,) = self._engine.infer(images)
        numbers: np.ndarray = np.asarray(rows).reshape(len(images), -1).argmax(axis=1)
        return numbers


def check_count(images: int, remedy: str = "") -> None:
    """JobError when so many images are too few to calibrate with and to judge by."""
    if images < CALIBRATION + LEAST_IMAGES:
        raise JobError(
            f"{images} images are too few to quantize with: {CALIBRATION} to calibrate and {LEAST_IMAGES} "
            f"to judge by are needed{remedy}"
        )


def _in_8_bits(exact: _Classifier, calibration: Sequence[Path]) -> Any:
    """Unsigned between the layers, signed weights with a scale per channel: what VNNI and AMX multiply at once."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    logging.getLogger().setLevel(logging.ERROR)  # it advises steps that have nothing to do on so plain a graph
    model = _modern(exact.model)
    with _scratch() as folder:
        made = folder / "model.onnx"
        try:
            quantize_static(
                model,
                made,
                _Reader(exact, calibration),
                quant_format=QuantFormat.QDQ,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                per_channel=True,
                nodes_to_exclude=_last_layer(model),
            )
        except (JobError, OSError):
            raise
        except Exception as error:  # it says by all kinds of errors that it does not know a graph
            raise JobError(
                f"onnxruntime cannot bring this model to 8 bits: {error}".split("\n", maxsplit=1)[0]
            ) from error
        return onnx.load(made)


def _modern(model: Any) -> Any:
    """The model in an opset that has a scale per channel, every node with a name."""
    import onnx

    version = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)
    if version < LEAST_OPSET:
        try:
            model = onnx.version_converter.convert_version(model, OPSET)
        except Exception as error:  # as above
            raise JobError(
                f"this model is of opset {version} and cannot be brought to {OPSET}, which 8 bits need ({error})",
                remedy="export it anew",
            ) from error
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"node_{number}"
    return model


def _last_layer(model: Any) -> list[str]:
    """Names of the nodes from the last one with weights on: it costs little, and in 8 bits classes would tie."""
    makers = {name: node for node in model.graph.node for name in node.output}
    names, node = [], makers.get(model.graph.output[0].name)
    while node is not None:
        names.append(node.name)
        node = None if node.op_type in WEIGHTED else makers.get(node.input[0])
    return names


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the models in between; JobError when it has no room for them."""
    try:
        with TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as error:
        raise JobError(
            f"{gettempdir()} cannot hold what is made in between ({error.strerror or error})",
            remedy="name a folder with 1 GB to spare in TMPDIR",
        ) from None


class _Reader:
    """Hands images to the calibration as it asks for them."""

    def __init__(self, exact: _Classifier, files: Sequence[Path]) -> None:
        self._name = exact.name
        self._batches = exact.batches(files)

    def get_next(self) -> dict[str, np.ndarray] | None:
        images = next(self._batches, None)
        return None if images is None else {self._name: images}


def _agreement(
    exact: _Classifier, quick: _Classifier, judged: Sequence[Path], on_step: Callable[[int, int], None]
) -> float:
    """Part of the images in whose best class both are at one."""
    same = done = 0
    for images in exact.batches(judged):
        same += int((exact.best(images) == quick.best(images)).sum())
        done += len(images)
        on_step(done, len(judged))
    return same / len(judged)
