"""The model in 8 bits that belongs to weights, or to any other classifier."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jobs.engines import onnx_file, onnx_graph
from jobs.engines.network import choose, network_named, preparation_beside
from jobs.engines.parameters import parameters
from jobs.engines.preparation_file import PreparationFile
from jobs.errors import JobError
from jobs.training.quantize import quantize

OnStep = Callable[[int, int], None]  # images that were compared, of how many


def beside(weights: Path, int8: Path, files: Sequence[Path], on_step: OnStep) -> dict[str, Any]:
    """Make the model in 8 bits of what was trained; where there can be none, a note why: the weights are good without.

    The first of the files calibrate, the others judge.
    """
    int8.unlink(missing_ok=True)  # it belonged to other weights
    try:
        return make(None, weights, int8, files, on_step)
    except JobError as error:
        return {"weights": None, "note": str(error)}


def make(model: str | None, weights: Path | None, int8: Path, files: Sequence[Path], on_step: OnStep) -> dict[str, Any]:
    """Of a model's file, or of the usual network with these weights; JobError when there can be none."""
    network = choose("onnx", model, weights)
    if network.graph is None:
        layers = network_named(network.model)
        exact = onnx_graph.model(layers, parameters(layers, weights))
    else:
        exact = onnx_file.read(network.graph)
    made = quantize(exact, PreparationFile.read(network.preparation), files, int8, on_step)
    if network.preparation:
        shutil.copyfile(network.preparation, preparation_beside(int8))
    return {"weights": str(made.file), "agreement": made.gate.agreement, "pictures": made.gate.images}
