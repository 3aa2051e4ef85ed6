"""Which faults each job meets."""

from __future__ import annotations

import random
from collections.abc import Sequence

ONCE = ("client", "job")
"""Who follows a job, and the job itself, can be killed once."""
ENDS_MASTER = frozenset({"full_disk", "machine", "master", "nodemanager", "partition", "zombie_master"})
MOST_MASTERS = 3
"""The application master is started four times at most, so that many of them may end it."""


def draw_faults(count: int, seed: int, kinds: Sequence[str], most: int) -> list[list[str]]:
    """So many faults in jobs of up to `most`: all kinds equally often, in an order that the seed decides."""
    chance = random.Random(seed)  # noqa: S311 faults, not secrets
    pool = [kinds[number % len(kinds)] for number in range(count)]
    chance.shuffle(pool)
    return pack(pool, most)


def pack(pool: Sequence[str], most: int) -> list[list[str]]:
    """The same faults in jobs, each in the first that bears it."""
    jobs: list[list[str]] = []
    for kind in pool:
        fitting = next((one for one in jobs if len(one) < most and _bears(one, kind)), None)
        if fitting is None:
            jobs.append([kind])
        else:
            fitting.append(kind)
    return jobs


def _bears(job: Sequence[str], kind: str) -> bool:
    """Whether a job goes on after this fault, too."""
    if kind in ONCE:
        return kind not in job
    return kind not in ENDS_MASTER or sum(one in ENDS_MASTER for one in job) < MOST_MASTERS
