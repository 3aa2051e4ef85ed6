"""What the loop of a program is given at once: a piece of this member's part of the global batch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MicroBatch:
    """Its part of the global batch, and when its samples were asked for, by the performance counter."""

    weight: float
    began_at: float


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller piece may go where this one did not.

    >>> is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    True
    """
    return isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate memory" in str(error)
