"""Files of Gluon parameters, as `net.save_parameters` writes them, read without MXNet."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

LIST_MAGIC = 0x112
DENSE_MAGICS = (0xF993FAC9, 0xF993FACA)  # NDArray since MXNet 1.0, and with NumPy's shapes since 1.6
DENSE = 0
TYPES: dict[int, Any] = {0: np.float32, 1: np.float64, 2: np.float16, 3: np.uint8, 4: np.int32, 5: np.int8, 6: np.int64}
MOST_DIMENSIONS = 8


def read(file: Path) -> dict[str, np.ndarray]:
    """Every array by its name, mapped into memory and not to be written to; ValueError says what is wrong."""
    try:
        content = np.memmap(file, dtype=np.uint8, mode="r")
    except ValueError:  # what NumPy says of an empty file
        raise ValueError("the file is empty") from None
    reader = _Reader(content)
    try:
        magic, _, count = reader.numbers("<QQQ")
        if magic != LIST_MAGIC:
            raise ValueError("it does not begin like Gluon parameters: write them with net.save_parameters")
        arrays = [reader.array() for _ in range(count)]
        (names,) = reader.numbers("<Q")
        if names != count:
            raise ValueError("its arrays have no names: write them with net.save_parameters")
        return {reader.name(): array for array in arrays}
    except struct.error:
        raise ValueError("it ends too early: copy it again") from None


class _Reader:
    """Goes through the file once."""

    def __init__(self, content: np.ndarray) -> None:
        self._content = content
        self._at = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, bytes(self._bytes(struct.calcsize(form))))

    def name(self) -> str:
        (length,) = self.numbers("<Q")
        return bytes(self._bytes(length)).decode(errors="replace")

    def array(self) -> np.ndarray:
        magic, storage, dimensions = self.numbers("<IiI")
        if magic not in DENSE_MAGICS or storage != DENSE or dimensions > MOST_DIMENSIONS:
            raise ValueError("it holds sparse or very old arrays: write it anew with net.save_parameters")
        shape = self.numbers(f"<{dimensions}q")
        _device, _number, kind = self.numbers("<iii")
        if kind not in TYPES:
            raise ValueError(f"it holds numbers of kind {kind}: save float32")
        dtype = np.dtype(TYPES[kind])
        count = int(np.prod(shape, dtype=np.int64))
        array: np.ndarray = self._bytes(count * dtype.itemsize).view(dtype).reshape(shape)
        return array

    def _bytes(self, length: int) -> np.ndarray:
        if not 0 <= length <= len(self._content) - self._at:
            raise struct.error
        self._at += length
        piece: np.ndarray = self._content[self._at - length : self._at]
        return piece
