"""Samples of a data set by their numbers, as batches of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.data import default_collate

from learning.errors import LearningError
from learning.member.read_ahead import ReadAhead


class Samples:
    """`data` is a tuple of tensors whose first dimension counts samples, on any device, or a data set of PyTorch.

    A data set may have, beside __len__ and __getitem__:

    batch_of(numbers)    these samples at once, stacked: a tensor, an array of numpy, or a tuple of these
    places_of(numbers)   for each of them the names of the nodes that hold a replica
    fingerprint          a text that differs when the samples are others: members with another one are refused
    reads_ahead          True when the next batch is to be read in a thread while one is computed
    """

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
        self._ahead = ReadAhead(self._read) if getattr(data, "reads_ahead", False) is True else None

    @property
    def places(self) -> Any:
        """The method that tells where samples lie, None without."""
        return getattr(self._data, "places_of", None)

    @property
    def fingerprint(self) -> str:
        """What the data set tells of what it holds, empty when it does not."""
        return str(getattr(self._data, "fingerprint", "")) if not self._are_tensors else ""

    def batch(
        self,
        numbers: Sequence[int],
        following: Callable[[], Sequence[int]] | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Any:
        """These samples, as a data loader would give them; `following` finds those that are likely to be next.

        Where they are read in a thread, Broken when `is_over()` before they are there.
        """
        if self._ahead is None:
            return self._read(numbers)
        found = self._ahead.take(numbers, is_over)
        self._ahead.expect(following() if following else ())
        return found

    def close(self) -> None:
        """Read nothing more."""
        if self._ahead is not None:
            self._ahead.close()

    def _read(self, numbers: Sequence[int]) -> Any:
        if self._are_tensors:
            chosen = torch.as_tensor(numbers, dtype=torch.int64)
            return tuple(one[chosen.to(one.device)] for one in self._data)
        if hasattr(self._data, "batch_of"):
            return _as_tensors(self._data.batch_of(numbers))
        return default_collate([self._data[number] for number in numbers])


def _as_tensors(batch: Any) -> Any:
    """Arrays of numpy become tensors without a copy."""
    if isinstance(batch, tuple):
        return tuple(map(_as_tensors, batch))
    return torch.as_tensor(batch)


def _count(data: Any) -> int:
    try:
        return len(data)
    except TypeError:
        raise LearningError(
            f"a {type(data).__name__} does not tell how many samples it has",
            "give tensors, or a data set with __len__ and __getitem__",
        ) from None
