"""The data: scikit-learn's 1,797 written digits, those for training each shifted in many ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

TEST = 360
SHIFTS = (-1, 0, 1)
"""Pixels of 8, to either side and up or down."""


def write(folder: Path, seed: int, samples: int) -> None:
    """Images of 8 x 8 numbers from 0 to 16 and their labels, so many for `train`, and for `test`: the seed decides."""
    found = load_digits()
    images, labels = found.images.astype(np.uint8), found.target.astype(np.uint8)
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(images))
    _write(folder, "test", images[order[:TEST]], labels[order[:TEST]])
    chosen = order[TEST:][np.arange(samples) % (len(images) - TEST)]
    moves = chance.choice(SHIFTS, size=(samples, 2))
    _write(folder, "train", shift(images[chosen], moves), labels[chosen])


def shift(images: NDArray[np.uint8], moves: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Each image moved by its own (down, right); what comes in from outside is 0."""
    widest = max(SHIFTS)
    wide = np.pad(images, ((0, 0), (widest, widest), (widest, widest)))
    height, width = images.shape[1:]
    rows = widest - moves[:, 0, None, None] + np.arange(height)[None, :, None]
    columns = widest - moves[:, 1, None, None] + np.arange(width)[None, None, :]
    moved: NDArray[np.uint8] = wide[np.arange(len(images))[:, None, None], rows, columns]
    return moved


def _write(folder: Path, name: str, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
    np.save(folder / f"{name}-images.npy", images)
    np.save(folder / f"{name}-labels.npy", labels)
