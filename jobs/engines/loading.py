"""A network made ready with all that belongs to it, or refused: the same on the client as in a container."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jobs.engines import Engine, create
from jobs.engines.description import Description
from jobs.engines.network import Network
from jobs.engines.outputs import count_classes
from jobs.engines.preparation_file import TENSORS, PreparationFile
from jobs.images.decoding import decode, prepare
from jobs.images.preparation import Preparation
from jobs.images.rows import probabilities
from jobs.images.tensors import OutputTensor


@dataclass(frozen=True)
class Loaded:
    """An engine that can infer.

    `tensors` are the outputs to store as they are, None for a classifier; `has_softmax` tells whether the numbers of
    its classes are probabilities already.
    """

    engine: Engine
    description: Description
    preparation: Preparation
    labels: list[str] | None
    tensors: tuple[OutputTensor, ...] | None
    has_softmax: bool

    def images(self, contents: Sequence[bytes]) -> np.ndarray:
        """Files of images as the network takes them; ValueError when one is none."""
        image = self.description.image
        made = np.empty((len(contents), *image.shape), image.dtype)
        for content, place in zip(contents, made, strict=True):
            self.prepare(content, place)
        return made

    def prepare(self, content: bytes, place: np.ndarray) -> None:
        """The same of one file, into its place."""
        how = self.preparation
        prepare(decode(content, how.needed_side), how, self.description.image.planes(place))

    def probabilities(self, images: np.ndarray) -> np.ndarray:
        """What a classifier makes of images: (images, classes)."""
        return probabilities(self.engine.infer(images)[0], self.has_softmax)


def load(network: Network, batch: int, engines: Callable[[str], Engine] = create) -> Loaded:
    """Load a network; ValueError says why it cannot be used, on whichever node."""
    labels = read_labels(network.labels)
    given = PreparationFile.read(network.preparation)
    engine = engines(network.engine)
    description = engine.load(network, given, batch)
    preparation = given.preparation(description.image)
    classes = count_classes(description, given)
    if labels is not None and network.labels is not None and classes != len(labels):
        knows = f"tells {classes} classes apart" if classes else "gives tensors, which have no classes"
        raise ValueError(f"{network.labels.name} names {len(labels)} classes, and the network {knows}")
    tensors = description.outputs if given.output == TENSORS else None
    has_softmax = description.is_probability if given.softmax is None else not given.softmax
    return Loaded(engine, description, preparation, labels, tensors, has_softmax)


def read_labels(file: Path | None) -> list[str] | None:
    """What the classes are called; ValueError when that is not text."""
    if file is None:
        return None
    try:
        return file.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.name} is not UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8") from None
