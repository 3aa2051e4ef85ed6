"""onnxruntime on one core: a network by name, or any ONNX file with one input of images."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobs.engines import onnx_file, onnx_graph
from jobs.engines.description import Description, ImageInput
from jobs.engines.gate import REMEDY, gate_of, has_gate
from jobs.engines.layers import LayeredNetwork
from jobs.engines.network import Network, network_named
from jobs.engines.outputs import describe
from jobs.engines.parameters import parameters
from jobs.engines.preparation_file import PreparationFile
from jobs.images.tensors import ImageArrays, OutputTensor

CLOSE = 1e-3
"""A model whose batch was changed must give the same numbers within this."""
SEED = 1
Results = list[ImageArrays]


class OnnxEngine:
    """One session, which takes as many images at once as its model does."""

    def load(self, network: Network, given: PreparationFile, batch: int) -> Description:  # noqa: ARG002  as all have it
        """Make a session of the model, and run it once so that the first real batch is not slower.

        Few images are enough for that, however many a batch has.
        """
        self._group: int | None = None
        self._squeezed: tuple[bool, ...] = ()
        if network.graph is None and not network.is_int8:
            return self._load_named(network_named(network.model), network.weights)
        file = network.graph or network.weights
        if file is None:
            raise ValueError(f"{network.model} needs a quantized model as --weights: {REMEDY}")
        try:
            model = onnx_file.read(file)
        except ValueError as error:
            raise ValueError(f"{error}: {REMEDY}" if network.graph is None else str(error)) from error
        metadata = onnx_file.metadata(model)
        if network.graph is None or has_gate(metadata):
            gate_of(metadata).check(file.name)
        try:
            return self.load_model(model, given)
        except ValueError as error:
            raise ValueError(f"{file.name} does not fit: {error}") from error

    def infer(self, images: np.ndarray) -> Results:
        """What the session gives, in groups if its model takes no other number of images."""
        if self._group is None:
            return [*self._run(images)]
        groups = [self._infer_padded(images[at : at + self._group]) for at in range(0, len(images), self._group)]
        return [[one for rows in output for one in rows][: len(images)] for output in zip(*groups, strict=True)]

    def _load_named(self, layers: LayeredNetwork, weights: Path | None) -> Description:
        self._session = onnx_graph.session_of(layers, parameters(layers, weights))
        self._name = onnx_graph.INPUT
        (rows,) = self.infer(np.zeros((1, *layers.image.shape), dtype=np.float32))
        output = OutputTensor(onnx_graph.OUTPUT, "float32", (len(rows[0]),))
        return Description(layers.image, (output,), is_probability=True)

    def load_model(self, model: Any, given: PreparationFile) -> Description:
        """Make a session of a model that was read; ValueError says why it does not fit."""
        found = onnx_file.image_input(model, given)
        self._name = found.name
        self._session = _session(model.SerializeToString())
        images = _noise(found.image, 2)
        self._group = found.batch
        self._squeezed = self._counts_images()
        if found.batch is None:
            results, note = self._as_it_is(images)
        else:
            results, note = self._free_batch(model, found.batch, images)
        names = [one.name for one in self._session.get_outputs()]
        outputs = describe(names, results, self._lengths())
        return Description(found.image, outputs, onnx_file.gives_probability(model), (note,) if note else ())

    @property
    def takes_any_number(self) -> bool:
        """Whether images go through it all at once."""
        return self._group is None

    def _as_it_is(self, images: np.ndarray) -> tuple[Results, str]:
        """What a model of any number of images gives for some, and what the user has to know of it."""
        results = self._run(images)
        if all(one.shape[:1] == (len(images),) for one in results):
            return [*results], ""
        self._group, self._squeezed = 1, tuple(one.shape[:1] == (len(images),) for one in results)
        return self.infer(images), "an output does not have one row per image: the images go through it one by one"

    def _free_batch(self, model: Any, batch: int, images: np.ndarray) -> tuple[Results, str]:
        """The same of a model of so many images, which takes any number from now on if it still gives the same then."""
        said = f"its batch is fixed at {batch}"
        if batch > 1 and not all(self._squeezed):
            raise ValueError(f"{said}, and an output does not have as many rows")
        wanted, fixed = self.infer(images), self._session
        try:
            self._session = onnx_graph.session(onnx_file.free_batch(model, batch).SerializeToString())
            if _is_same(self._run(images), wanted):
                self._group = None
                return wanted, f"{said}: it was changed to take any number of images"
        except Exception as error:  # onnxruntime has a class of its own for each way in which a graph does not fit
            print(f"another batch does not fit: {error}".split("\n", maxsplit=1)[0], file=sys.stderr)
        self._session = fixed
        how = "one by one" if batch == 1 else "in groups"
        return wanted, f"{said} and cannot be changed: images go through it {how}"

    def _counts_images(self) -> tuple[bool, ...]:
        """Of each output of a model that takes groups, whether it has as many rows."""
        shapes = [one.shape for one in self._session.get_outputs()]
        return tuple(bool(shape) and shape[0] == self._group for shape in shapes)

    def _infer_padded(self, images: np.ndarray) -> Results:
        """One group, filled up with zeros."""
        whole = np.zeros((self._group or 1, *images.shape[1:]), images.dtype)
        whole[: len(images)] = images
        results = self._run(whole)
        return [list(one) if rows else [one] for one, rows in zip(results, self._squeezed, strict=True)]

    def _run(self, images: np.ndarray) -> list[np.ndarray]:
        try:
            results: list[np.ndarray] = self._session.run(None, {self._name: images})
        except Exception as error:
            raise ValueError(f"it does not run: {str(error).splitlines()[0]}") from error
        return results

    def _lengths(self) -> list[list[int | str | None]]:
        """Of each output for one image, the lengths that the model promises: numbers, and anything else for others."""
        shapes = [one.shape for one in self._session.get_outputs()]
        counts_images = self._squeezed if self._group else (True,) * len(shapes)
        return [shape[1:] if counted else shape for shape, counted in zip(shapes, counts_images, strict=True)]


def _session(content: bytes) -> Any:
    try:
        return onnx_graph.session(content)
    except Exception as error:  # as above
        raise ValueError(f"onnxruntime does not take it: {str(error).splitlines()[0]}") from error


def _noise(image: ImageInput, count: int) -> np.ndarray:
    chance = np.random.default_rng(SEED)
    if image.dtype == "uint8":
        return chance.integers(0, 256, (count, *image.shape), dtype=np.uint8)
    return chance.standard_normal((count, *image.shape)).astype(image.dtype)


def _is_same(results: Sequence[np.ndarray], wanted: Sequence[ImageArrays]) -> bool:
    return all(
        one.shape == np.shape(other) and np.allclose(one, other, rtol=CLOSE, atol=CLOSE)
        for one, other in zip(results, wanted, strict=True)
    )
