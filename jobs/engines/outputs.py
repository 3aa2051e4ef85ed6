"""What the outputs of a network are: numbers of classes, or tensors of any shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jobs.engines.description import Description
from jobs.engines.preparation_file import CLASSES, PreparationFile
from jobs.images.tensors import ImageArrays, OutputTensor


def describe(
    names: Sequence[str], results: Sequence[ImageArrays], lengths: Sequence[Sequence[object]] | None = None
) -> tuple[OutputTensor, ...]:
    """The outputs by what came for some images; ValueError when one has no numbers.

    `lengths` are those of one image as each output promises them, None where all images get the same ones. A length
    that is not a number may be another one for another image.
    """
    found = []
    for number, (name, rows) in enumerate(zip(names, results, strict=True)):
        first = np.asarray(rows[0])
        if first.dtype.kind not in "fiub":
            raise ValueError(f"its output {name} holds {first.dtype}, and only numbers can be stored")
        promised = first.shape if lengths is None else lengths[number]
        if len(promised) != first.ndim:
            promised = (None,) * first.ndim
        shape = tuple(length if isinstance(length, int) else None for length in promised)
        found.append(OutputTensor(name, first.dtype.name, shape, first.shape))
    return tuple(found)


def count_classes(description: Description, given: PreparationFile) -> int | None:
    """How many classes a network tells apart, None when it gives tensors; ValueError when its output is not a row."""
    if given.output != CLASSES:
        return None
    if len(description.outputs) != 1:
        names = ", ".join(one.name for one in description.outputs)
        raise ValueError(f'it has several outputs ({names}), and classes need exactly one: write output = "tensors"')
    (output,) = description.outputs
    lengths = [length for length in output.shape if length != 1]
    if len(lengths) != 1 or lengths[0] is None or np.dtype(output.dtype).kind != "f":
        raise ValueError(
            f"its output {output.name} of the shape {list(output.shape)} is not a row of numbers, one for each class: "
            'write output = "tensors"'
        )
    return lengths[0]
