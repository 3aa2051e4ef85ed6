"""States as bytes: what comes out is what went in, and nothing in them is code."""

from __future__ import annotations

import copy
import json
import pickle
import struct
from typing import Any

import numpy as np
import pytest
import torch

from learning.state.framed import frame
from learning.state.plain_state import _DTYPES, from_bytes, to_bytes

VALUES: list[Any] = [
    {"state": {0: {"step": 3, "exp_avg": torch.arange(6.0).reshape(2, 3)}, 1: {}}, "param_groups": [{"lr": 1e-3}]},
    (1, [2.5, None, True, "text"], ()),
    torch.tensor(7, dtype=torch.int64),
    torch.zeros(0, 3),
    torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    torch.tensor([True, False]),
    torch.arange(12.0, dtype=torch.float64).reshape(3, 4).t(),
    float("inf"),
    [float("nan"), -float("inf"), 0.1, -0.0],
    {(1, "a"): 2, 1.5: torch.ones(3, dtype=torch.uint8), None: torch.ones(2, dtype=torch.float64)},
    torch.tensor([1 + 2j, 3 - 4j]),
    torch.tensor([1 + 2j, 3 - 4j]).conj(),
    torch._neg_view(torch.ones(3)),
    torch.ones(2, 1).expand(2, 3),
    *[torch.ones(3).to(getattr(torch, name)) for name in _DTYPES],
]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return bool(one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return isinstance(other, float) and repr(one) == repr(other)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_what_comes_out_is_what_went_in(value: Any) -> None:
    assert same(from_bytes(to_bytes(value)), value)


def test_an_optimizer_goes_on_as_if_nothing_had_been() -> None:
    def trained(steps: int, state: bytes | None = None) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        if state is not None:
            told = from_bytes(state)
            model.load_state_dict(told["model"])
            optimizer.load_state_dict(told["optimizer"])
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).pow(2).sum().backward()
            optimizer.step()
        return model, optimizer

    model, optimizer = trained(3)
    state = to_bytes({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    resumed, _ = trained(2, state)
    whole, _ = trained(5)

    assert all(torch.equal(one, other) for one, other in zip(resumed.parameters(), whole.parameters(), strict=True))


def test_what_is_loaded_is_a_copy_or_lies_apart_from_everything_else() -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    told = from_bytes(to_bytes({"optimizer": optimizer.state_dict(), "model": model.state_dict()}))
    before = copy.deepcopy(told["model"])

    model.load_state_dict(told["model"])
    optimizer.load_state_dict(told["optimizer"])
    optimizer.step()

    assert same(told["model"], before)
    assert not torch.equal(model.weight, before["weight"])


def test_tensors_that_share_memory_do_not_overlap_and_can_be_read_in_place() -> None:
    first, second, third = from_bytes(to_bytes([torch.ones(3, dtype=torch.uint8), torch.ones(2), torch.ones(1)]))
    second.zero_()

    assert second.data_ptr() - first.data_ptr() == 16  # a copy would lie anywhere
    assert (first.tolist(), third.tolist()) == ([1, 1, 1], [1.0])
    assert not second.data_ptr() % 16


def test_a_number_of_numpy_in_an_optimizer_comes_back_as_a_float() -> None:
    (found,) = from_bytes(to_bytes([np.float64(0.1)]))

    assert type(found) is float and found == 0.1


REFUSED: dict[str, tuple[Any, str]] = {
    "a function": (same, "a function cannot be a part of a state"),
    "a quantized tensor": (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "a tensor of quint8 cannot"),
    "a sparse tensor": (torch.eye(2).to_sparse(), r"a tensor of layout sparse_coo cannot .*: take its to_dense\(\)"),
    "a number of another sort": (np.float32(1), "a float32 cannot be a part"),
}


@pytest.mark.parametrize(("value", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_plain_value_is_refused(value: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        to_bytes({"schedule": value})


def content(told: Any, numbers: bytes = b"") -> bytes:
    """A state with this description."""
    description = told if isinstance(told, bytes) else json.dumps(told).encode()
    return struct.pack("<Q", len(description)) + description + numbers


def tensor(name: Any = "float32", shape: Any = (4,)) -> bytes:
    return content({"tensor": name, "shape": shape}, bytes(16))


WRONG = {
    "nothing": b"",
    "few": b"short",
    "a pickle": pickle.dumps({"a": 1}),
    "cut": to_bytes(torch.ones(9))[:-1],
    "cut amid the description": to_bytes({"a": 1})[:-1],
    "shorter than it says": struct.pack("<Q", 99) + b"1",
    "more than a state": to_bytes(torch.ones(4)) + b"more",
    "no JSON": content(b"{"),
    "no text": content(b'"\xff"'),
    "nested": content(b"[" * 100_000 + b"]" * 100_000),
    "a key that is a list": content({"pairs": [[[1], 2]]}),
    "a pair of three": content({"pairs": [[1, 2, 3]]}),
    "pairs that are a number": content({"pairs": 1}),
    "a tuple of a number": content({"tuple": 1}),
    "a description of nothing": content({"a": 1}),
    "quantized": tensor("quint8", [16]),
    "no dtype": tensor("nn", [4]),
    "a dtype that is a number": tensor(1, [4]),
    "a dtype that is a list": tensor(["float32"], [4]),
    "a shape that is a number": tensor(shape=4),
    "a shape of texts": tensor(shape=["4"]),
    "a shape of a bool": tensor(shape=[True, 4]),
    "less than nothing": tensor(shape=[-1]),
    "less than nothing, twice": tensor(shape=[-2, -2]),
    "more than any memory": tensor(shape=[2**60]),
    "more than any number": tensor(shape=[2**70]),
    "nothing of more than any number": content({"tensor": "float32", "shape": [0, 2**70]}),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_bytes_that_are_no_state_are_refused(wrong: bytes) -> None:
    with pytest.raises(ValueError):
        from_bytes(wrong)


def test_what_a_tensor_lacks_is_said() -> None:
    with pytest.raises(ValueError, match=f"a tensor of {2**62} bytes has 16"):
        from_bytes(tensor(shape=[2**60]))


def test_memory_that_can_be_written_is_used_in_place_and_other_memory_is_not() -> None:
    """What stands before has any length that `frame` gives."""
    given = {"a": torch.arange(5.0), "b": [torch.arange(3)]}
    before = frame({"what": "stands before"}, [])
    content = bytearray(to_bytes(given, before))

    ours = from_bytes(memoryview(content)[len(before) :])
    copied = from_bytes(memoryview(bytes(content))[len(before) :])
    content[-16:-8] = (77).to_bytes(8, "little")

    assert ours["b"][0].tolist() == [0, 1, 77]
    assert copied["b"][0].tolist() == [0, 1, 2] and copied["a"].tolist() == [0, 1, 2, 3, 4]


def test_memory_at_an_odd_place_is_copied() -> None:
    content = bytearray(b"." + to_bytes({"a": torch.arange(5.0)}))

    found = from_bytes(memoryview(content)[1:])["a"]
    content[-32:] = bytes(32)

    assert found.tolist() == [0, 1, 2, 3, 4]
