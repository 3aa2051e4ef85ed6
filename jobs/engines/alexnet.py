"""AlexNet as a row of layers."""

from __future__ import annotations

from jobs.engines.description import ImageInput
from jobs.engines.layers import Convolution, Dense, Dropout, Flatten, LayeredNetwork, Pooling

NETWORK = LayeredNetwork(
    "alexnet",
    "AlexNet",
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
