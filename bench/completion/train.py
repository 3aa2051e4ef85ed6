"""Run on a node by a Python with numpy: trains a small network on drawn digits, and prints how far it is.

`train.py PROGRAM STEPS SEED [SOURCE]`: PROGRAM is `dense` (two full layers), `conv` (a convolution before them) or
`read` (as `dense`, with noise that comes from SOURCE, a HOST:PORT that sends bytes without end). The same words make
the same steps. It needs nothing of nodewise.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

SIDE, CLASSES, BATCH, RATE = 16, 10, 64, 0.05
STEPS_A_LINE = 20
READ_BYTES = 4 << 20
"""Of a step of `read`: 1000 Mbit/s take longer to bring them than 0.4 CPU to train with them."""
WORST = 2.2
"""Loss after 100 steps or more; that of guessing is 2.3."""
# Seven strokes, as of a clock's digits: top, both upper sides, middle, both lower sides, bottom.
STROKES = ("1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011")
Array = Any


def main(program: str, steps: int, seed: int, source: str = "") -> None:
    """Train; exit status 1 when the network has learned nothing."""
    dice = np.random.default_rng(seed)
    network = Convolution(dice) if program == "conv" else Dense(dice, SIDE * SIDE)
    noise = Reader(source).noise if program == "read" else lambda: dice.normal(0, 0.3, (BATCH, SIDE, SIDE))
    for step in range(1, steps + 1):
        pictures, classes = draw(dice, noise)
        loss = network.learn(pictures, classes)
        if step % STEPS_A_LINE == 0 or step == steps:
            print(f"nodewise: step={step} loss={loss:.4f}", flush=True)
    if steps >= 100 and loss > WORST:
        sys.exit(f"the loss is still {loss:.2f}")


def draw(dice: np.random.Generator, noise: Callable[[], Array]) -> tuple[Array, Array]:
    """A batch of noisy digits, each somewhere in its picture."""
    classes = dice.integers(0, CLASSES, BATCH)
    pictures = noise()
    for picture, one in zip(pictures, classes, strict=True):
        x, y = dice.integers(1, 7, 2)
        for on, (left, top, wide, high) in zip(STROKES[one], PLACES, strict=True):
            if on == "1":
                picture[y + top : y + top + high, x + left : x + left + wide] += 1
    return pictures, classes


PLACES = ((0, 0, 6, 1), (0, 0, 1, 4), (5, 0, 1, 4), (0, 4, 6, 1), (0, 4, 1, 4), (5, 4, 1, 4), (0, 8, 6, 1))


class Reader:
    """What comes from a source over the network; nothing of it is a file, so no cache can keep it."""

    def __init__(self, source: str) -> None:
        host, _, port = source.rpartition(":")
        self.stream = socket.create_connection((host, int(port)), timeout=60).makefile("rb", buffering=0)
        self.bytes = bytearray(READ_BYTES)

    def noise(self) -> Array:
        """The noise of a batch, from the last of READ_BYTES bytes."""
        left = memoryview(self.bytes)
        while left:
            count = self.stream.readinto(left)
            if not count:
                sys.exit("the source has ended")
            left = left[count:]
        last = np.frombuffer(self.bytes, np.uint8)[-BATCH * SIDE * SIDE :]
        return last.reshape(BATCH, SIDE, SIDE) / 255 - 0.5


class Dense:
    """Two full layers with a ramp between them, trained by plain gradient descent."""

    def __init__(self, dice: np.random.Generator, inputs: int, hidden: int = 256) -> None:
        self.first = dice.normal(0, (2 / inputs) ** 0.5, (inputs, hidden))
        self.second = dice.normal(0, (1 / hidden) ** 0.5, (hidden, CLASSES))

    def learn(self, pictures: Array, classes: Array) -> float:
        """One step; the cross entropy before it."""
        return self.learn_from(pictures.reshape(BATCH, -1), classes)[0]

    def learn_from(self, inputs: Array, classes: Array) -> tuple[float, Array]:
        """One step; the loss before it, and its gradient by the inputs."""
        hidden = np.maximum(inputs @ self.first, 0)
        scores = hidden @ self.second
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = scores / scores.sum(axis=1, keepdims=True)
        loss = float(-np.log(shares[np.arange(BATCH), classes] + 1e-12).mean())
        shares[np.arange(BATCH), classes] -= 1
        back = (shares / BATCH @ self.second.T) * (hidden > 0)
        by_inputs = back @ self.first.T
        self.second -= RATE * hidden.T @ shares / BATCH
        self.first -= RATE * inputs.T @ back
        return loss, by_inputs


class Convolution:
    """Eight filters of 3 x 3 with a ramp, then two full layers."""

    FILTERS, SIZE = 8, 3

    def __init__(self, dice: np.random.Generator) -> None:
        self.filters = dice.normal(0, (2 / 9) ** 0.5, (self.SIZE**2, self.FILTERS))
        self.inside = SIDE - self.SIZE + 1
        self.rest = Dense(dice, self.inside**2 * self.FILTERS, 64)

    def learn(self, pictures: Array, classes: Array) -> float:
        """One step; the cross entropy before it."""
        parts = np.lib.stride_tricks.sliding_window_view(pictures, (self.SIZE, self.SIZE), (1, 2))
        patches = parts.reshape(-1, self.SIZE**2)
        seen = patches @ self.filters
        loss, back = self.rest.learn_from(np.maximum(seen, 0).reshape(BATCH, -1), classes)
        self.filters -= RATE * patches.T @ (back.reshape(-1, self.FILTERS) * (seen > 0))
        return loss


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
