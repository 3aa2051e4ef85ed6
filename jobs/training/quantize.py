"""AlexNet in whole numbers of 8 bits, and the gate that lets it be used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np

from jobs.engines import onnx_graph
from jobs.engines.onnx_alexnet_int8 import LEAST_AGREEMENT, LEAST_PICTURES, Gate
from jobs.errors import JobError
from jobs.training.pictures import batches
from jobs.training.writing import written

CALIBRATION = 64
"""Pictures that tell how large the numbers between the layers become."""
MOST_PICTURES = 1000
"""That the gate looks at."""
BATCH = 8
IN_FLOAT = ("output", "softmax")
"""The last layer costs little, and in 8 bits classes would tie."""


@dataclass(frozen=True)
class Quantized:
    """The model's file, and how it passed."""

    file: Path
    gate: Gate


def quantize(
    values: Mapping[str, np.ndarray], pictures: Sequence[Path], file: Path, on_step: Callable[[int, int], None]
) -> Quantized:
    """Write the network of these parameters in 8 bits; JobError when it does not pass, and nothing is written then.

    Calibrated with the first pictures, judged by others: by all the rest, or as many as the gate looks at.
    """
    check_count(len(pictures))
    calibration, judged = list(pictures[:CALIBRATION]), list(pictures[CALIBRATION : CALIBRATION + MOST_PICTURES])
    with written(file) as part:
        model = _in_8_bits(onnx_graph.alexnet(values), calibration)
        gate = Gate(_agreement(values, model, judged, on_step), len(judged))
        if not gate.passed:
            raise JobError(
                f"in 8 bits the network agrees with itself in float32 on {gate.agreement:.1%} of {gate.pictures} "
                f"pictures, and {LEAST_AGREEMENT:.0%} are needed: train it longer, or use onnx_alexnet"
            )
        gate.write_into(model)
        part.write_bytes(model.SerializeToString())
    return Quantized(file, gate)


def check_count(pictures: int, remedy: str = "") -> None:
    """JobError when so many pictures are too few to calibrate with and to judge by."""
    if pictures < CALIBRATION + LEAST_PICTURES:
        raise JobError(
            f"{pictures} pictures are too few to quantize with: {CALIBRATION} to calibrate and {LEAST_PICTURES} "
            f"to judge by are needed{remedy}"
        )


def _in_8_bits(model: Any, calibration: Sequence[Path]) -> Any:
    """Unsigned between the layers, signed weights with a scale per channel: what VNNI and AMX multiply at once."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    logging.getLogger().setLevel(logging.ERROR)  # it advises steps that have nothing to do on so plain a graph
    with _scratch() as folder:
        made = folder / "model.onnx"
        quantize_static(
            model,
            made,
            _Reader(calibration),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            nodes_to_exclude=list(IN_FLOAT),
        )
        return onnx.load(made)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the models in between; JobError when it has no room for them."""
    try:
        with TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as error:
        raise JobError(
            f"{gettempdir()} cannot hold what is made in between ({error.strerror or error}): "
            "name a folder with 1 GB to spare in TMPDIR"
        ) from None


class _Reader:
    """Hands pictures to the calibration as it asks for them."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._batches: Iterator[np.ndarray] = batches(files, BATCH)

    def get_next(self) -> dict[str, np.ndarray] | None:
        pixels = next(self._batches, None)
        return None if pixels is None else {onnx_graph.INPUT: pixels}


def _agreement(
    values: Mapping[str, np.ndarray], model: Any, judged: Sequence[Path], on_step: Callable[[int, int], None]
) -> float:
    """Part of the pictures in whose best class both are at one."""
    exact = onnx_graph.session_of(values)
    quick = onnx_graph.session(model.SerializeToString())
    same = done = 0
    for pixels in batches(judged, BATCH):
        one, other = (onnx_graph.run(session, pixels).argmax(axis=1) for session in (exact, quick))
        same += int((one == other).sum())
        done += len(pixels)
        on_step(done, len(judged))
    return same / len(judged)
