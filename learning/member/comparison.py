"""Whether all members have the same parameters, as they promise: asked before a state is stored.

Each tells a digest of its own, which says whether the bits are the same, and a sketch, the sum of all with fixed signs,
which says how far apart they are. Processors of different kinds may round differently: that is told, and is no fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch

from learning.errors import LearningError
from learning.member.membership import Membership

ROUNDING = 1e-3
"""A larger difference of sketches, as a part of the length of all parameters, is no rounding."""
_DIGEST, _SKETCH, _LENGTH, _EACH = 0, 1, 2, 3
_DIGEST_BYTES = 6
"""A whole number of 48 bits is exact in float64."""
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Differences:
    """Ranks whose parameters differ from those that most members have, by rounding alone or by more."""

    rounded: tuple[int, ...] = ()
    wrong: tuple[int, ...] = ()


def compare(mine: Membership, parameters: torch.Tensor, step: int) -> tuple[str, ...]:
    """The members whose parameters differ by rounding from those of most; Broken when they cannot tell each other.

    LearningError at all members when those of one differ by more.
    """
    members = mine.members
    if len(members) == 1:
        return ()
    told = torch.zeros(len(members), _EACH, dtype=torch.float64)
    told[mine.rank] = mark(parameters)
    mine.group.add_up(told)
    found = find_differences(told)
    if found.wrong:
        names = ", ".join(members[rank] for rank in found.wrong)
        raise LearningError(
            f"after step {step} the parameters of {names} are not those of the other members",
            "let nothing but the optimizer change them, and test the memory of that node; "
            "resume the run from its last checkpoint, at which all had the same",
        )
    return tuple(members[rank] for rank in found.rounded)


def mark(parameters: torch.Tensor) -> torch.Tensor:
    """What a member tells of its parameters."""
    digest = blake2b(parameters.numpy(), digest_size=_DIGEST_BYTES).digest()
    signs = torch.randint(2, (_BLOCK,), generator=torch.Generator().manual_seed(1)).to(parameters.dtype) * 2 - 1
    sketch = sum(float(torch.dot(block, signs[: len(block)])) for block in parameters.split(_BLOCK))
    length = float(torch.linalg.vector_norm(parameters))
    return torch.tensor([float(int.from_bytes(digest, "big")), sketch, length], dtype=torch.float64)


def find_differences(told: torch.Tensor) -> Differences:
    """By the marks of all members, one a row."""
    digests: Sequence[float] = told[:, _DIGEST].tolist()
    ((usual, _),) = Counter(digests).most_common(1)
    first = digests.index(usual)
    others = [rank for rank, digest in enumerate(digests) if digest != usual]
    most = ROUNDING * float(told[first, _LENGTH])
    wrong = [rank for rank in others if not abs(float(told[rank, _SKETCH] - told[first, _SKETCH])) <= most]
    return Differences(tuple(rank for rank in others if rank not in wrong), tuple(wrong))
