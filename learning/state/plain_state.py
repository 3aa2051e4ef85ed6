"""States as bytes in which there is no code: nested dictionaries, lists, numbers, texts and tensors.

The tensors' numbers follow the description, one after the other. Each tensor's are filled up with zeros to a multiple
of 16 bytes, so that every tensor can be read in place. torch.save writes pickles, which can run anything when they are
read; its safe way to read them, `weights_only`, does not know floats before PyTorch 2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import torch

from learning.state.framed import ALIGNED, frame, unframe

_PLAIN = (bool, int, float, str, type(None))
_DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("float16", "float32", "float64", "bfloat16", "complex64", "complex128"),
        *("int8", "int16", "int32", "int64", "uint8", "bool"),
    )
}
"""Others are refused: PyTorch ends the process when it is to read quantized numbers from bytes."""


def to_bytes(value: Any, before: bytes = b"") -> bytes:
    """With `before` before it; TypeError when something in it is of another kind. Numbers are copied once."""
    tensors: list[Any] = []
    return frame(_describe(value, tensors), tensors, before)


def from_bytes(content: bytes | bytearray | memoryview) -> Any:
    """What `to_bytes` was given, with tuples as they were; ValueError when the bytes are anything else.

    All tensors share one piece of memory, no two of them the same part of it: it stays as long as any of them. It is
    the memory of `content` where that can be written, so whoever gives such a one uses it no more.
    """
    try:
        description, rest = unframe(content)
        reader = _Reader(rest if _is_usable(rest) else bytearray(rest))
        value = reader.read(description)
    except RecursionError:
        raise ValueError("the description is nested too deeply") from None
    reader.close()
    return value


def _is_usable(memory: memoryview) -> bool:
    """Whether tensors can lie in it."""
    if memory.readonly or not memory.nbytes:
        return False
    return bool(torch.frombuffer(memory, dtype=torch.uint8).data_ptr() % ALIGNED == 0)


def _describe(value: Any, tensors: list[Any]) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, torch.Tensor):
        return _describe_tensor(value, tensors)
    if isinstance(value, Mapping):
        return {"pairs": [[_describe(key, tensors), _describe(one, tensors)] for key, one in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_describe(one, tensors) for one in value]}
    if isinstance(value, list):
        return [_describe(one, tensors) for one in value]
    raise TypeError(f"a {type(value).__name__} cannot be a part of a state: {value!r:.100}")


def _describe_tensor(value: torch.Tensor, tensors: list[Any]) -> Any:
    name = str(value.dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise TypeError(f"a tensor of {name} cannot be a part of a state: take one of {', '.join(_DTYPES)}")
    if value.layout != torch.strided:
        layout = str(value.layout).removeprefix("torch.")
        raise TypeError(f"a tensor of layout {layout} cannot be a part of a state: take its to_dense()")
    plain = value.detach().resolve_conj().resolve_neg().cpu().contiguous()
    if size := plain.numel() * plain.element_size():
        tensors += [plain.reshape(-1).view(torch.uint8).numpy(), bytes(-size % ALIGNED)]
    return {"tensor": name, "shape": list(plain.shape)}


class _Reader:
    """Takes the tensors' numbers in their order."""

    def __init__(self, content: bytearray | memoryview) -> None:
        self._content = content
        self._begin = 0

    def read(self, told: Any) -> Any:
        """The value of a description."""
        match told:
            case list():
                return [self.read(one) for one in told]
            case {"pairs": list(pairs)}:
                return dict(self._pair(pair) for pair in pairs)
            case {"tuple": list(ones)}:
                return tuple(self.read(one) for one in ones)
            case {"tensor": str(name), "shape": list(shape)}:
                return self._tensor(name, shape)
            case dict():
                raise ValueError(f"this describes nothing: {told!r:.100}")
        return told

    def close(self) -> None:
        """Nothing may be left."""
        if left := len(self._content) - self._begin:
            raise ValueError(f"{left} bytes belong to no tensor")

    def _pair(self, pair: Any) -> tuple[Hashable, Any]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"this is no key with its value: {pair!r:.100}")
        key = self.read(pair[0])
        try:
            hash(key)
        except TypeError:
            raise ValueError(f"this cannot be a key: {key!r:.100}") from None
        return key, self.read(pair[1])

    def _tensor(self, name: str, shape: list[Any]) -> torch.Tensor:
        if (dtype := _DTYPES.get(name)) is None:
            raise ValueError(f"there are no numbers of the sort {name!r}")
        if not all(type(one) is int and one >= 0 for one in shape):
            raise ValueError(f"no tensor has the shape {shape!r:.100}")
        count, width, begin = math.prod(shape), torch.empty(0, dtype=dtype).element_size(), self._begin
        taken = count * width + -count * width % ALIGNED
        if taken > len(self._content) - begin:
            raise ValueError(f"a tensor of {taken} bytes has {len(self._content) - begin}")
        self._begin += taken
        try:
            if not count:
                return torch.empty(shape, dtype=dtype)
            return torch.frombuffer(self._content, dtype=dtype, count=count, offset=begin).reshape(shape)
        except (RuntimeError, TypeError, OverflowError) as error:  # a dimension too large for 64 bits
            raise ValueError(f"no tensor has the shape {shape!r:.100}") from error
