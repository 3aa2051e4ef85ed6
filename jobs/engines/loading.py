"""A network made ready with all that belongs to it, or refused: the same on the client as in a container."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.engines import Engine, create
from jobs.engines.class_names import check_labels, read_labels
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
        """Files of images as the network takes them; ValueError when one is not an image."""
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
    check_labels(network.labels, labels, classes)
    tensors = description.outputs if given.output == TENSORS else None
    has_softmax = description.is_probability if given.softmax is None else not given.softmax
    return Loaded(engine, description, preparation, labels, tensors, has_softmax)
