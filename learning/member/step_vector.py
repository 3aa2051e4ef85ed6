"""What the members of a generation add up in one step, as one vector.

    gradient | loss | is it the last step of the generation | of the run | is its state to be stored
             | of each member: seconds, whether its gradient is faulty, a check

A member fills in its own part of the sum and leaves the places of others at 0. So afterwards all know the same of each.
The check is a number made of what all members must agree on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch

from learning.errors import LearningError

_LOSS, _LAST, _STOPS, _STORES, _OF_MEMBERS = 0, 1, 2, 3, 4
_SECONDS, _FAULTY, _CHECK, _EACH = 0, 1, 2, 3


@dataclass(frozen=True)
class Heard:
    """What a step has told all members: `seconds` of computing by rank, and the ranks whose gradient is not finite.

    `is_last` says whether it is the last step of the generation, `is_stop` whether it is that of the run, `is_stored`
    whether the state after it is to be stored.
    `agree` says whether all have computed by the same shares, `is_finite` whether the sum is.
    """

    loss: float
    is_last: bool
    seconds: tuple[float, ...]
    faulty: tuple[int, ...]
    agree: bool
    is_finite: bool
    is_stop: bool = False
    is_stored: bool = False

    def check(self, step: int, members: Sequence[str]) -> None:
        """LearningError when the members cannot apply it."""
        if self.faulty or not self.is_finite:
            names = ", ".join(members[rank] for rank in self.faulty) or "all members together"
            raise LearningError(
                f"the gradient of step {step} is not finite on {names}",
                "take a smaller learning rate, or look for a division by 0 or a logarithm of 0 in the loss",
            )
        if not self.agree:
            raise LearningError(
                f"the members do not agree on the shares of step {step}",
                "this is a fault of nodewise: report it, and resume the run from its last checkpoint",
            )


class StepVector:
    """Of one member and one step: a new one each time, since a call that was abandoned may still write into it."""

    def __init__(self, size: int, rank: int, members: int, dtype: torch.dtype) -> None:
        self.data = torch.zeros(size + _OF_MEMBERS + _EACH * members, dtype=dtype)
        self.gradient = self.data[:size]
        self._rest = self.data[size : size + _OF_MEMBERS]
        self._members = self.data[size + _OF_MEMBERS :].view(members, _EACH)
        self._own = self._members[rank]

    def add(self, loss: float, weight: float, seconds: float) -> None:
        """Note a micro-batch whose gradient was added: its mean loss, its part of the batch, and its time."""
        self._rest[_LOSS] += loss * weight
        self._own[_SECONDS] += seconds

    def close(self, agreed: str, *, is_last: bool, is_stop: bool = False, is_stored: bool = False) -> None:
        """Before it is added up; `agreed` is what all members must agree on.

        A gradient that is not finite is left out, so that its owner can be told.
        """
        if not (_is_finite(self.gradient) and _is_finite(self._rest[_LOSS])):
            self.gradient.zero_()
            self._rest[_LOSS] = 0.0
            self._own[_FAULTY] = 1.0
        self._own[_CHECK] = float(int.from_bytes(blake2b(agreed.encode(), digest_size=2).digest(), "big"))
        self._rest[_LAST] = float(is_last)
        self._rest[_STOPS] = float(is_stop)
        self._rest[_STORES] = float(is_stored)

    def read(self) -> Heard:
        """After it was added up."""
        told = self._members.t().tolist()
        return Heard(
            loss=float(self._rest[_LOSS]),
            is_last=bool(self._rest[_LAST] > 0),
            seconds=tuple(told[_SECONDS]),
            faulty=tuple(rank for rank, fault in enumerate(told[_FAULTY]) if fault),
            agree=len(set(told[_CHECK])) == 1,
            is_finite=_is_finite(self.gradient),
            is_stop=bool(self._rest[_STOPS] > 0),
            is_stored=bool(self._rest[_STORES] > 0),
        )


def _is_finite(values: torch.Tensor) -> bool:
    """Whether all are. A finite sum says so sooner than a look at each; a sum that is not may only be too large.

    >>> _is_finite(torch.tensor([3e38, 3e38])), _is_finite(torch.tensor([1.0, torch.inf, -torch.inf]))
    (True, False)
    """
    return math.isfinite(float(values.sum())) or bool(torch.isfinite(values).all())
