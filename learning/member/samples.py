"""Samples of a data set by their numbers, as batches of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import default_collate

from learning.errors import LearningError


class Samples:
    """`data` is a tuple of tensors whose first dimension counts samples, on any device, or a data set of PyTorch."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._are_tensors = isinstance(data, (tuple, list)) and bool(data) and all(map(torch.is_tensor, data))
        sizes = {_count(one) for one in data} if self._are_tensors else {_count(data)}
        if len(sizes) != 1:
            raise LearningError(
                f"the tensors have {', '.join(map(str, sorted(sizes)))} samples", "give as many in each of them"
            )
        (self.count,) = sizes
        if not self.count:
            raise LearningError("the data has no samples", "there must be one at least")

    def batch(self, numbers: Sequence[int]) -> Any:
        """These samples, as a data loader would give them."""
        if self._are_tensors:
            chosen = torch.as_tensor(numbers, dtype=torch.int64)
            return tuple(one[chosen.to(one.device)] for one in self._data)
        return default_collate([self._data[number] for number in numbers])


def _count(data: Any) -> int:
    try:
        return len(data)
    except TypeError:
        raise LearningError(
            f"a {type(data).__name__} does not tell how many samples it has",
            "give tensors, or a data set with __len__ and __getitem__",
        ) from None
