"""Compresses and unpacks layers, by Arrow, which is imported only then: most runners never need its 25 MB of memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

MAGIC = b"\x28\xb5\x2f\xfd"
"""How whatever is compressed so begins."""

Write = Callable[[bytes], object]


@contextmanager
def compressing(write: Write) -> Iterator[Write]:
    """Yield what takes pieces, and passes them on compressed."""
    import pyarrow as pa

    with pa.CompressedOutputStream(pa.PythonFile(_Writer(write), mode="w"), "zstd") as packed:
        yield packed.write


@contextmanager
def unpacking(packed: IO[bytes] | io.RawIOBase) -> Iterator[IO[bytes]]:
    """Yield a file of the unpacked bytes, whose reads raise OSError when they cannot be unpacked."""
    import pyarrow as pa

    with pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd") as stream:
        yield stream


class Pieces(io.RawIOBase):
    """A file that is read to its end once, of pieces that come one by one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """It can."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill what there is of one piece into a buffer; 0 at the end."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count


class _Writer(io.RawIOBase):
    """A file that is written to its end once, for Arrow."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def writable(self) -> bool:
        return True

    def write(self, piece: bytes) -> int:  # type: ignore[override]
        self._write(bytes(piece))
        return len(piece)
