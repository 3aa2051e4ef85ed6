"""Samples by their numbers: batches as a data loader would give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from learning.errors import LearningError
from learning.member.samples import Samples


class Named:
    def __len__(self) -> int:
        return 5

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {"x": torch.full((2,), float(number)), "more": {"label": number, "name": f"n{number}"}}


def test_a_batch_of_tensors_has_the_samples_of_these_numbers_in_this_order() -> None:
    x, y = Samples((torch.arange(10).reshape(5, 2), torch.arange(5))).batch([3, 0, 3])

    assert x.tolist() == [[6, 7], [0, 1], [6, 7]]
    assert y.tolist() == [3, 0, 3]


def test_a_list_of_tensors_is_as_good_as_a_tuple() -> None:
    assert [one.tolist() for one in Samples([torch.arange(5)]).batch([4])] == [[4]]


DEVICES = [
    "meta",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")),
]


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_stays_on_the_device_of_its_tensors(device: str) -> None:
    data = torch.arange(10.0).reshape(5, 2)

    x, y = Samples((data.to(device), data)).batch([3, 0])

    assert (x.device.type, x.shape) == (device, (2, 2))
    assert y.tolist() == [[6.0, 7.0], [0.0, 1.0]]
    assert device == "meta" or torch.equal(x.cpu(), y)


def test_a_data_set_may_return_dictionaries() -> None:
    samples = Samples(Named())

    batch = samples.batch([4, 1])

    assert samples.count == 5
    assert batch["x"].tolist() == [[4.0, 4.0], [1.0, 1.0]]
    assert batch["more"]["label"].tolist() == [4, 1]
    assert batch["more"]["name"] == ["n4", "n1"]


WRONG: dict[str, tuple[Any, str]] = {
    "unequal": ((torch.ones(3), torch.ones(4)), "the tensors have 3, 4 samples: give as many in each of them"),
    "a number": ((torch.tensor(1.0),), "a Tensor does not tell how many samples it has"),
    "no tensors": ((), "the data has no samples"),
    "no samples": ((torch.ones(0, 2),), "the data has no samples"),
    "an iterator": (iter([1]), "a list_iterator does not tell how many samples it has"),
}


@pytest.mark.parametrize(("data", "said"), WRONG.values(), ids=WRONG)
def test_data_that_cannot_be_numbered_is_refused(data: Any, said: str) -> None:
    with pytest.raises(LearningError, match=said):
        Samples(data)


class Stored:
    """A data set that gives many samples at once."""

    def __len__(self) -> int:
        return 5

    def batch_of(self, numbers: Sequence[int]) -> tuple[Any, Any]:
        return np.array(numbers, np.float32).reshape(-1, 1), torch.tensor(numbers)


def test_many_samples_at_once_are_tensors_whatever_they_were() -> None:
    x, y = Samples(Stored()).batch([4, 1])

    assert (x.dtype, x.tolist()) == (torch.float32, [[4.0], [1.0]])
    assert y.tolist() == [4, 1]
