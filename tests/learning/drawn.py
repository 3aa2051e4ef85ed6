"""Pictures of some classes to train with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from jobs.images import labels


def draw_classes(folder: Path, chance: np.random.Generator, samples: int, classes: int) -> None:
    """Seeded pictures in a sub-folder for each class, and the table that packs are made by."""
    shown = {}
    for number in range(samples):
        name = f"class{number % classes}/{number:03}.png"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(256, size=(20, 24, 3), dtype=np.uint8)).save(folder / name)
        shown[name] = f"class{number % classes}"
    labels.write(folder, shown, sorted(set(shown.values())))
