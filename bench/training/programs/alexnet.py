"""AlexNet, the pictures that it learns, and how many it knows of those that it has never seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.training.settings import Settings
from jobs.training.train import judge

CLASSES = 10
JUDGED = 32
"""At a time."""


def load(settings: Settings, name: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images as AlexNet takes them, of `train` or `test`, and the numbers of their classes."""
    folder = Path(settings.data)
    return np.load(folder / f"pictures-{name}-images.npy"), np.load(folder / f"pictures-{name}-labels.npy")


def accuracy(net: Any, settings: Settings) -> float:
    """The share of the test's pictures that it knows."""
    images, labels = load(settings, "test")
    parts = (images[at : at + JUDGED] for at in range(0, len(images), JUDGED))
    by_class = judge(net, parts, labels, list(map(str, range(CLASSES))))
    return sum(right for right, _ in by_class.values()) / len(labels)
