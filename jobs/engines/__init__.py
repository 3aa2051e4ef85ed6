"""What can look at a picture: one file per engine, and one line here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

import numpy as np

from jobs.errors import JobError

ENGINES = {
    "mxnet_alexnet": "jobs.engines.mxnet_alexnet:MxnetAlexnet",
    "onnx_alexnet": "jobs.engines.onnx_alexnet:OnnxAlexnet",
    "onnx_alexnet_int8": "jobs.engines.onnx_alexnet_int8:OnnxAlexnetInt8",
}
"""Name -> where its class is. Only a worker imports it, because only a worker has the framework."""


class Engine(Protocol):
    """A network that sorts pictures into classes.

    `load` runs once in the parent process of a worker, and `infer` in the children that it forks.
    """

    def load(self, weights: Path | None, batch: int) -> None:
        """Get ready for batches of `batch` pictures, seeded without weights; ValueError when they do not fit.

        Afterwards the process may fork.
        """

    def infer(self, pictures: np.ndarray) -> np.ndarray:
        """Probabilities (pictures, classes) of float32 pictures (pictures, 3, 224, 224), normalised as ImageNet's."""


def check_engine(name: str) -> str:
    """Return the name of a known engine; JobError lists those there are."""
    if name not in ENGINES:
        raise JobError(f"engine {name!r} is unknown: choose one of {', '.join(sorted(ENGINES))}")
    return name


def create(name: str) -> Engine:
    """A new engine, not yet loaded."""
    module, _, attribute = ENGINES[check_engine(name)].partition(":")
    engine: Engine = getattr(import_module(module), attribute)()
    return engine
