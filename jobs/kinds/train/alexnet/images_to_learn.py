"""The images of a folder in HDFS, divided as everywhere into those to learn from and those to judge by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jobs.images import labels
from jobs.training.labelled_images import class_names, split_places, vary_pixels
from jobs.training_data.files import below, plain_path
from jobs.training_data.images import Batch, HdfsImages, hdfs_images


class ImagesToLearn:
    """Of a network that takes images of `crop`; JobError or LearningError says why nothing can be learned from them.

    `table` is a file as labels.tsv; without one, sub-folders or packs have the labels. `learned` and `held` are numbers
    of images: the same folder, table and seed give the same ones on every machine.
    """

    def __init__(self, folder: str, table: str | None, seed: int, crop: tuple[int, int]) -> None:
        self.all = hdfs_images(folder, crop, labels=table)
        self.classes = class_names(table or folder, _names(self.all, folder, table))
        self.learned, self.held = split_places(self.all.labels, self.classes, seed)


class Varied:
    """A data set for `Run` of `count` images to learn from, each cut anew whenever it is shown.

    All are shown once before any is shown again, as far as numbers go. How sample number n is cut depends on the seed
    and n alone, so it does not matter who computes it, and a step that is done again sees the same.
    """

    reads_ahead = True

    def __init__(self, images: ImagesToLearn, count: int, seed: int) -> None:
        self._images = images.all
        self._learned = np.asarray(images.learned, np.int64)
        self._count = count
        self._seed = seed
        self.fingerprint = f"{images.all.fingerprint} varied"

    def __len__(self) -> int:
        return self._count

    def batch_of(self, numbers: Sequence[int]) -> Batch:
        """Images of shape (number, channels, height, width), and the numbers of their classes."""
        rows = self._rows(numbers)
        chances = [np.random.default_rng((self._seed, number)) for number in numbers]
        decoded, how = self._images.decode(rows.tolist()), self._images.how
        shown = [vary_pixels(pixels, how, chance) for pixels, chance in zip(decoded, chances, strict=True)]
        return np.stack(shown), self._images.labels[rows]

    def places_of(self, numbers: Sequence[int]) -> list[tuple[str, ...]]:
        """The nodes that hold each of these images."""
        return self._images.places_of(self._rows(numbers).tolist())

    def _rows(self, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
        rows: npt.NDArray[np.int64] = self._learned[np.asarray(numbers, np.int64) % len(self._learned)]
        return rows


def _names(images: HdfsImages, folder: str, table: str | None) -> dict[int, str]:
    """The name of each label: in the table, or that of the sub-folder; in packs they have numbers alone."""
    if table:
        return {label.number: label.name for label in labels.read(Path(table)).values()}
    first = zip(*np.unique(images.labels, return_index=True), strict=True)
    return {int(number): _folder_of(images.path(int(at)), folder) or f"class {number}" for number, at in first}


def _folder_of(path: str | None, folder: str) -> str:
    return below(plain_path(folder), path).partition("/")[0] if path else ""
