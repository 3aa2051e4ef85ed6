"""A share is computed in micro-batches: sizes near one another, so that the time of a step stays a straight line."""

from __future__ import annotations

MOST = 128
"""Samples in one micro-batch: with more of them the caches overflow, and each sample takes longer."""


def split(samples: int, most: int = MOST) -> tuple[int, ...]:
    """Divide `samples` into as few micro-batches of at most `most` as can be; their sizes differ by one at most.

    >>> split(300)
    (100, 100, 100)
    >>> split(130)
    (65, 65)
    >>> split(0)
    ()
    """
    if samples < 0 or most < 1:
        raise ValueError(f"{samples} samples cannot be divided into micro-batches of at most {most}")
    count = -(-samples // most)
    return tuple((samples + number) // count for number in reversed(range(count)))


def halve(most: int) -> int:
    """The size to try after a micro-batch of `most` did not fit into memory; ValueError if that was one sample.

    >>> halve(96)
    48
    """
    if most < 2:
        raise ValueError("a single sample does not fit into memory")
    return most // 2
