"""AlexNet: its layers and its parameters, the same numbers for every framework, of a file or seeded."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jobs.engines import gluon_file
from jobs.engines.description import ImageInput
from jobs.engines.layers import Convolution, Dense, Dropout, Flatten, LayeredNetwork, Pooling

SEED = 2012
"""Of the weights nobody gave: the same on every node, so that every node sees the same classes."""
CLASSES = 1000
"""Of the seeded network, as many as ImageNet's."""

NETWORK = LayeredNetwork(
    "alexnet",
    ImageInput(224, 224),
    (
        Convolution(64, window=11, stride=4, padding=2),
        Pooling(3, stride=2),
        Convolution(192, window=5, padding=2),
        Pooling(3, stride=2),
        Convolution(384, window=3, padding=1),
        Convolution(256, window=3, padding=1),
        Convolution(256, window=3, padding=1),
        Pooling(3, stride=2),
        Flatten(),
        Dense(4096),
        Dropout(0.5),
        Dense(4096),
        Dropout(0.5),
    ),
)
"""With the names and shapes of `gluon.model_zoo.vision.alexnet`."""


def parameters(file: Path | None) -> dict[str, np.ndarray]:
    """Weights and biases by Gluon's names, float32; ValueError when the file's are not AlexNet's."""
    if file is None:
        return _seed_parameters()
    try:
        found = gluon_file.read(file)
        _check(found)
    except OSError as error:
        raise ValueError(f"{file.name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{file.name} does not fit AlexNet: {error}") from None
    return {name: np.asarray(found[name], dtype=np.float32) for name in NETWORK.shapes(_classes(found))}


def _classes(found: Mapping[str, np.ndarray]) -> int:
    bias = found.get("output.bias")
    return CLASSES if bias is None or bias.ndim != 1 else len(bias)


def _check(found: Mapping[str, np.ndarray]) -> None:
    wanted = NETWORK.shapes(_classes(found))
    if missing := sorted(wanted.keys() - found.keys()):
        raise ValueError(f"it has no {missing[0]}: write it with net.save_parameters of vision.alexnet")
    for name, shape in wanted.items():
        if found[name].shape != shape:
            raise ValueError(f"its {name} has the shape {found[name].shape}, and AlexNet's has {shape}")
    if extra := sorted(found.keys() - wanted.keys()):
        raise ValueError(f"it has also {extra[0]}, which AlexNet has not")


def _seed_parameters() -> dict[str, np.ndarray]:
    return {name: _draw(name, shape) for name, shape in NETWORK.shapes(CLASSES).items()}


def _draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Glorot and Bengio's uniform distribution (Xavier), biases 0; each parameter has a generator of its own."""
    if len(shape) == 1:
        return np.zeros(shape, dtype=np.float32)
    window = int(np.prod(shape[2:]))
    reach = np.float32(np.sqrt(6 / (window * (shape[0] + shape[1]))))
    chance = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    return (chance.random(shape, dtype=np.float32) * 2 - 1) * reach
