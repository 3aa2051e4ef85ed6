"""Parameters of a network that is written down as layers: the same for every framework, of a file or seeded."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jobs.engines import gluon_file
from jobs.engines.layers import LayeredNetwork

SEED = 2012
"""Of the weights nobody gave: the same on every node, so that every node sees the same classes."""
CLASSES = 1000
"""Of a seeded network, as many as ImageNet's."""


def parameters(network: LayeredNetwork, file: Path | None) -> dict[str, np.ndarray]:
    """Weights and biases by Gluon's names, float32; ValueError when the file's are not those of the network."""
    if file is None:
        return {name: _draw(name, shape) for name, shape in network.shapes(CLASSES).items()}
    try:
        found = gluon_file.read(file)
        _check(network, found)
    except OSError as error:
        raise ValueError(f"{file.name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{file.name} does not fit {network.title}: {error}") from None
    return {name: np.asarray(found[name], dtype=np.float32) for name in network.shapes(_classes(found))}


def _classes(found: Mapping[str, np.ndarray]) -> int:
    bias = found.get("output.bias")
    return CLASSES if bias is None or bias.ndim != 1 else len(bias)


def _check(network: LayeredNetwork, found: Mapping[str, np.ndarray]) -> None:
    wanted = network.shapes(_classes(found))
    if missing := sorted(wanted.keys() - found.keys()):
        raise ValueError(f"it has no {missing[0]}: write it with net.save_parameters of vision.{network.name}")
    for name, shape in wanted.items():
        if found[name].shape != shape:
            raise ValueError(f"its {name} has the shape {found[name].shape}, and {network.title}'s has {shape}")
    if extra := sorted(found.keys() - wanted.keys()):
        raise ValueError(f"it also has {extra[0]}, which {network.title} does not have")


def _draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Glorot and Bengio's uniform distribution (Xavier), biases 0; each parameter has a generator of its own."""
    if len(shape) == 1:
        return np.zeros(shape, dtype=np.float32)
    window = int(np.prod(shape[2:]))
    reach = np.float32(np.sqrt(6 / (window * (shape[0] + shape[1]))))
    chance = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    return (chance.random(shape, dtype=np.float32) * 2 - 1) * reach
