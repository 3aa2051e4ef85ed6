"""A network written down as a row of layers, of which every framework can make its own."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.engines.description import ImageInput


@dataclass(frozen=True)
class Convolution:
    """With bias, then ReLU."""

    channels: int
    window: int
    stride: int = 1
    padding: int = 0


@dataclass(frozen=True)
class Pooling:
    """The largest of each window."""

    window: int
    stride: int


@dataclass(frozen=True)
class Flatten:
    """All that there is of an image in one row."""


@dataclass(frozen=True)
class Dense:
    """With bias, then ReLU."""

    units: int


@dataclass(frozen=True)
class Dropout:
    """Does something only in training."""

    rate: float


Layer = Convolution | Pooling | Flatten | Dense | Dropout


@dataclass(frozen=True)
class LayeredNetwork:
    """A classifier: `layers`, then a dense layer with a unit for each class, then softmax.

    `title` is what people call it. Parameters have the names that Gluon gives them in a file: `features.0.weight` of
    layer 0, `output.bias`.
    """

    name: str
    title: str
    image: ImageInput
    layers: tuple[Layer, ...]

    def shapes(self, classes: int) -> dict[str, tuple[int, ...]]:
        """Of every parameter of a network with so many classes."""
        found: dict[str, tuple[int, ...]] = {}
        channels, side, width = self.image.channels, self.image.height, 0
        for number, layer in enumerate(self.layers):
            if isinstance(layer, Convolution):
                found |= _both(f"features.{number}", (layer.channels, channels, layer.window, layer.window))
                channels, side = layer.channels, (side + 2 * layer.padding - layer.window) // layer.stride + 1
            elif isinstance(layer, Pooling):
                side = (side - layer.window) // layer.stride + 1
            elif isinstance(layer, Flatten):
                width = channels * side * side
            elif isinstance(layer, Dense):
                found |= _both(f"features.{number}", (layer.units, width))
                width = layer.units
        return found | _both("output", (classes, width))


def _both(name: str, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
