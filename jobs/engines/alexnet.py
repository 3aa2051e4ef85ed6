"""AlexNet's parameters, the same numbers for every engine: of a file, or seeded."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jobs.engines import gluon_file

SEED = 2012
"""Of the weights nobody gave: the same on every node, so that every node sees the same classes."""
CLASSES = 1000
"""Of the seeded network, as many as ImageNet's."""

WEIGHTS = {
    "features.0.weight": (64, 3, 11, 11),
    "features.2.weight": (192, 64, 5, 5),
    "features.4.weight": (384, 192, 3, 3),
    "features.5.weight": (256, 384, 3, 3),
    "features.6.weight": (256, 256, 3, 3),
    "features.9.weight": (4096, 9216),
    "features.11.weight": (4096, 4096),
    "output.weight": (CLASSES, 4096),
}
"""Names and shapes of `gluon.model_zoo.vision.alexnet`; the last layer has as many rows as there are classes."""


def parameters(file: Path | None) -> dict[str, np.ndarray]:
    """Weights and biases by Gluon's names, float32; ValueError when the file's are not AlexNet's."""
    if file is None:
        return _seeded()
    try:
        found = gluon_file.read(file)
        _check(found)
    except OSError as error:
        raise ValueError(f"{file.name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{file.name} does not fit AlexNet: {error}") from None
    return {name: np.asarray(found[name], dtype=np.float32) for name in shapes(_classes(found))}


def shapes(classes: int) -> dict[str, tuple[int, ...]]:
    """Of every parameter of a network with so many classes."""
    both: dict[str, tuple[int, ...]] = {}
    for name, shape in WEIGHTS.items():
        rows = classes if name.startswith("output.") else shape[0]
        both[name] = (rows, *shape[1:])
        both[name.replace("weight", "bias")] = (rows,)
    return both


def _classes(found: Mapping[str, np.ndarray]) -> int:
    bias = found.get("output.bias")
    return CLASSES if bias is None or bias.ndim != 1 else len(bias)


def _check(found: Mapping[str, np.ndarray]) -> None:
    wanted = shapes(_classes(found))
    if missing := sorted(wanted.keys() - found.keys()):
        raise ValueError(f"it has no {missing[0]}: write it with net.save_parameters of vision.alexnet")
    for name, shape in wanted.items():
        if found[name].shape != shape:
            raise ValueError(f"its {name} has the shape {found[name].shape}, and AlexNet's has {shape}")
    if extra := sorted(found.keys() - wanted.keys()):
        raise ValueError(f"it has also {extra[0]}, which AlexNet has not")


def _seeded() -> dict[str, np.ndarray]:
    return {name: _drawn(name, shape) for name, shape in shapes(CLASSES).items()}


def _drawn(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Glorot and Bengio's uniform distribution (Xavier), biases 0; each parameter has a generator of its own."""
    if len(shape) == 1:
        return np.zeros(shape, dtype=np.float32)
    window = int(np.prod(shape[2:]))
    reach = np.float32(np.sqrt(6 / (window * (shape[0] + shape[1]))))
    chance = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    return (chance.random(shape, dtype=np.float32) * 2 - 1) * reach
