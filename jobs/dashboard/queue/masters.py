"""Of which type of resource the application masters of a queue have most of what they may have."""

from __future__ import annotations

from collections.abc import Sequence

from hadoop.rest.amounts import MEMORY, Amounts
from hadoop.rest.scheduler import LeafQueue
from infosvc.wire.queues import MastersLimit


def find_limit(queue: LeafQueue, asks: Sequence[Amounts], *, counts_all: bool) -> MastersLimit:
    """The limit that is full for those that wait and ask for that type, else the one that is nearest to being full.

    `asks` are of those that wait there. Where YARN does not count all types, it is that of memory.
    """
    names = [name for name, most in queue.masters_most.items() if most and (counts_all or name == MEMORY)]
    limits = [_limit(queue, name, asks) for name in names]
    return max(limits, key=lambda one: (one.is_full, one.used / one.most), default=_limit(queue, MEMORY, asks))


def _limit(queue: LeafQueue, name: str, asks: Sequence[Amounts]) -> MastersLimit:
    used, most = queue.masters.get(name, 0), queue.masters_most.get(name, 0)
    least = min((one[name] for one in asks if one.get(name)), default=1)
    return MastersLimit(name, used, most, is_full=used > 0 and used + least > most)  # YARN lets any first one in
