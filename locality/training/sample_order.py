"""Which samples each step of a run uses: a function of seed and batch size alone, whoever computes them.

    S(e, k) = perm(seed, e)[k B : (k + 1) B]        the last batch of an epoch is short

perm is a Feistel network on the smallest power of four that holds all samples; what falls outside is sent through
again until it falls inside (Black and Rogaway 2002). It needs no memory, and each place is found alone. It is made of
additions, multiplications and shifts of unsigned 64-bit integers and of BLAKE2b, which every Python and every numpy
computes alike; numpy's own generators promise the same numbers only within one version.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from locality.types import PlanError

Ints = NDArray[np.int64]
_Words = NDArray[np.uint64]

ROUNDS = 8
_FIRST = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(30))
_SECOND = (np.uint64(0x94D049BB133111EB), np.uint64(27))
_LAST_SHIFT = np.uint64(31)


@dataclass(frozen=True, slots=True)
class SampleOrder:
    """The order of `samples` samples, numbered from 0, in global batches of `batch`.

    >>> order = SampleOrder(samples=10, batch=4, seed=7)
    >>> [order.of_step(epoch=0, step=step).tolist() for step in range(order.steps)]
    [[9, 7, 3, 1], [4, 0, 5, 2], [8, 6]]
    """

    samples: int
    batch: int
    seed: int = 0

    def __post_init__(self) -> None:
        """PlanError names what is out of range."""
        if not 0 < self.samples <= 2**62:
            raise PlanError(f"{self.samples} samples cannot be put in order", remedy="there must be one at least")
        if self.batch < 1:
            raise PlanError(f"a batch of {self.batch} samples is no batch", remedy="it must have one at least")

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-self.samples // self.batch)

    def locate(self, run_step: int) -> tuple[int, int]:
        """Epoch and step within it of a step that is counted from the beginning of the run."""
        return divmod(run_step, self.steps)

    def of_step(self, epoch: int, step: int) -> Ints:
        """S(e, k): the numbers of its samples."""
        if not (0 <= step < self.steps and epoch >= 0):
            raise PlanError(f"there is no step {step} in epoch {epoch}", remedy=f"an epoch has {self.steps} steps")
        first = step * self.batch
        return self._permute(np.arange(first, min(first + self.batch, self.samples), dtype=np.uint64), epoch)

    def _permute(self, places: _Words, epoch: int) -> Ints:
        half = max(1, -(-(self.samples - 1).bit_length() // 2))
        keys = _keys(self.seed, epoch)
        found = _feistel(places, half, keys)
        while (outside := found >= self.samples).any():
            found[outside] = _feistel(found[outside], half, keys)
        return found.astype(np.int64)


def _keys(seed: int, epoch: int) -> _Words:
    digest = blake2b(f"{seed}/{epoch}".encode(), digest_size=8 * ROUNDS).digest()
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


def _feistel(values: _Words, half: int, keys: _Words) -> _Words:
    """A permutation of the numbers below 4 ** `half`."""
    width, mask = np.uint64(half), np.uint64(2**half - 1)
    left, right = values >> width, values & mask
    for key in keys:
        left, right = right, left ^ (_mix(right + key) & mask)
    return (left << width) | right


def _mix(values: _Words) -> _Words:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    for factor, shift in (_FIRST, _SECOND):
        values = (values ^ (values >> shift)) * factor
    mixed: _Words = values ^ (values >> _LAST_SHIFT)
    return mixed
