"""Frameworks that run networks on images: one file a framework, and one line here. A network is data, see `network`."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

import numpy as np

from jobs.engines.description import Description
from jobs.engines.network import Network
from jobs.engines.preparation_file import PreparationFile
from jobs.errors import JobError
from jobs.images.tensors import ImageArrays

ENGINES = {
    "mxnet": "jobs.engines.mxnet_engine:MxnetEngine",
    "onnx": "jobs.engines.onnx_engine:OnnxEngine",
}
"""Name -> where its class is. Only a worker imports it, because only a worker has the framework."""


class Engine(Protocol):
    """A framework with one network in it.

    `load` runs once in the parent process of a worker, and `infer` in the children that it forks.
    """

    def load(self, network: Network, given: PreparationFile, batch: int) -> Description:
        """Get ready for batches of `batch` images; ValueError says why the network cannot be used.

        `given` is what the file beside the network says. Afterwards the process may fork.
        """

    def infer(self, images: np.ndarray) -> list[ImageArrays]:
        """For each output one array per image; `images` are as the description says."""


def check_engine(name: str) -> str:
    """Return the name of a known engine; JobError lists those there are."""
    if name not in ENGINES:
        raise JobError(f"engine {name!r} is unknown", remedy=f"choose one of {', '.join(sorted(ENGINES))}")
    return name


def create(name: str) -> Engine:
    """A new engine, not yet loaded."""
    module, _, attribute = ENGINES[check_engine(name)].partition(":")
    engine: Engine = getattr(import_module(module), attribute)()
    return engine
