"""Images to learn from, to calibrate with and to judge by: found in a folder, cut anew each time they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jobs.engines.description import ImageInput
from jobs.errors import JobError
from jobs.images import labels
from jobs.images.decoding import decode, prepare
from jobs.images.preparation import Preparation

HELD_OUT = 5
"""One image of so many of each class is kept for judging."""
SMALLEST_CUT = 0.7
"""Of an image's shorter side."""


@dataclass(frozen=True)
class Labelled:
    """Files, and the number of each one's class among `classes`."""

    files: list[Path]
    numbers: np.ndarray
    classes: list[str]

    def of(self, chosen: Sequence[int] | np.ndarray) -> Labelled:
        """Only those at these places."""
        return Labelled([self.files[at] for at in chosen], self.numbers[chosen], self.classes)


def read_labelled(folder: Path) -> Labelled:
    """The images that the folder's table names; JobError when they are not enough to learn from."""
    table = labels.read(folder / labels.LABELS)
    classes = class_names(folder / labels.LABELS, {label.number: label.name for label in table.values()})
    if missing := next((name for name in sorted(table) if not (folder / name).is_file()), None):
        raise JobError(f"{folder / missing} is not there, although {labels.LABELS} names it", remedy="mend the table")
    numbers = np.array([table[name].number for name in sorted(table)])
    return Labelled([folder / name for name in sorted(table)], numbers, classes)


def class_names(where: Path | str, names: Mapping[int, str]) -> list[str]:
    """One for each number up to the largest; JobError when the names that are known are not those of a classifier."""
    count = max(names, default=-1) + 1
    if len(names) < 2:
        raise JobError(f"{where} names {len(names)} classes", remedy="to learn takes two or more")
    if count > 2 * len(names) + 1000:
        raise JobError(f"{where} has class number {count - 1} for {len(names)} classes", remedy="count from 0")
    return [names.get(at, f"class {at}") for at in range(count)]


def split(images: Labelled, seed: int) -> tuple[Labelled, Labelled]:
    """To learn from, and held out: the same part of every class; JobError when a class has too few."""
    learned, held = split_places(images.numbers, images.classes, seed)
    return images.of(learned), images.of(held)


def split_places(numbers: np.ndarray, classes: Sequence[str], seed: int) -> tuple[list[int], list[int]]:
    """As `split`, of images that are known by the number of each one's class: their places among these."""
    chance = np.random.default_rng(seed)
    learned: list[int] = []
    held: list[int] = []
    for number in np.unique(numbers):
        places = chance.permutation(np.flatnonzero(numbers == number))
        if len(places) < HELD_OUT:
            raise JobError(
                f"class {classes[number]} has {len(places)} images",
                remedy=f"at least {HELD_OUT} of each are needed",
            )
        held += places[: len(places) // HELD_OUT].tolist()
        learned += places[len(places) // HELD_OUT :].tolist()
    return learned, held


def find_files(folder: Path) -> list[Path]:
    """Every file below a folder that may be an image, by path."""
    known = {folder / labels.LABELS, folder / labels.CLASSES}
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path not in known)
    if not files:
        raise JobError(f"{folder} holds no images", remedy="make some with `nodewise images make`")
    return files


def vary(file: Path, how: Preparation, chance: np.random.Generator) -> np.ndarray:
    """A square of the image at a place and of a size that chance chooses, mirrored or not, as `prepare` gives it."""
    return vary_pixels(_decode(file, how), how, chance)


def vary_pixels(pixels: np.ndarray, how: Preparation, chance: np.random.Generator) -> np.ndarray:
    """As `vary`, of an image that is decoded."""
    height, width = pixels.shape[:2]
    side = max(1, int(min(height, width) * chance.uniform(SMALLEST_CUT, 1)))
    top, left = chance.integers(height - side + 1), chance.integers(width - side + 1)
    square = pixels[top : top + side, left : left + side]
    if chance.random() < 0.5:
        square = np.ascontiguousarray(square[:, ::-1])
    return prepare(square, replace(how, resize=None))


def batches(
    files: Sequence[Path], size: int, how: Preparation, image: ImageInput | None = None
) -> Iterator[np.ndarray]:
    """All of them in their order, as a job sees them; the last batch may be short.

    Without `image` they are float32 with their channels first.
    """
    kind = image or ImageInput(*how.crop, len(how.mean))
    for first in range(0, len(files), size):
        some = files[first : first + size]
        images = np.empty((len(some), *kind.shape), kind.dtype)
        for file, place in zip(some, images, strict=True):
            prepare(_decode(file, how), how, kind.planes(place))
        yield images


def _decode(file: Path, how: Preparation) -> np.ndarray:
    try:
        return decode(file.read_bytes(), how.needed_side)
    except (OSError, ValueError) as error:
        raise JobError(f"{file} cannot be used ({error})", remedy="take it out of the folder") from None
